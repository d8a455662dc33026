from alembic import op

revision = '2_item_name'
down_revision = '1_item'


def upgrade():
    with op.get_context().autocommit_block():
        # An attempt that was broken off leaves an invalid index.
        op.execute('DROP INDEX CONCURRENTLY IF EXISTS item_name_idx')
        op.create_index('item_name_idx', 'item', ['name'], postgresql_concurrently=True)


def downgrade():
    with op.get_context().autocommit_block():
        op.drop_index('item_name_idx', 'item', postgresql_concurrently=True)
