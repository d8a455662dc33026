exports.up = (pgm) => {
    pgm.noTransaction();
    // An attempt that was broken off leaves an invalid index.
    pgm.dropIndex('item', 'name', { name: 'item_name_idx', concurrently: true, ifExists: true });
    pgm.createIndex('item', 'name', { name: 'item_name_idx', concurrently: true });
};

exports.down = (pgm) => {
    pgm.noTransaction();
    pgm.dropIndex('item', 'name', { name: 'item_name_idx', concurrently: true });
};
