import sqlalchemy as sa
from alembic import op

revision = '1_item'
down_revision = None


def upgrade():
    op.create_table('item', sa.Column('id', sa.BigInteger, primary_key=True, autoincrement=False),
                    sa.Column('name', sa.Text, nullable=False))


def downgrade():
    op.drop_table('item')
