# PostgreSQL with advisory_ext and pg_cron: the official image, and two extensions.
#
#   docker build --build-arg PG_MAJOR=17 --tag advisory_ext:17 .
#
# compose.yaml starts it, with an exporter for Prometheus.

ARG PG_MAJOR=17

# ---- The extension is built on the image that it is for: with its compiler, its libraries and
# ---- the headers of its server.
FROM postgres:${PG_MAJOR} AS build

# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ make "postgresql-server-dev-$PG_MAJOR" \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /usr/src/advisory_ext
COPY . .
RUN make -j"$(nproc)" PG_CONFIG="/usr/lib/postgresql/$PG_MAJOR/bin/pg_config" \
    && make install DESTDIR=/stage PG_CONFIG="/usr/lib/postgresql/$PG_MAJOR/bin/pg_config"

# ---- What runs has neither compiler nor headers.
FROM postgres:${PG_MAJOR}

# The package repository of the PostgreSQL project, which the image knows, has pg_cron for each of
# its versions.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends "postgresql-$PG_MAJOR-cron" \
    && rm -rf /var/lib/apt/lists/*

COPY --from=build /stage/ /
COPY docker/10-advisory_ext.sh /docker-entrypoint-initdb.d/

HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["sh", "-c", \
        "pg_isready --quiet --host=127.0.0.1 --username=\"${POSTGRES_USER:-postgres}\""]
