exports.up = (pgm) => {
    pgm.createTable('item', {
        id: { type: 'bigint', primaryKey: true },
        name: { type: 'text', notNull: true },
    });
};

exports.down = (pgm) => {
    pgm.dropTable('item');
};
