FROM golang:1.26.8-alpine AS build
WORKDIR /src
COPY . .
# The tags leave out parts of gin, gRPC, net/http and pgx that the shop does not use. The mounts keep modules
# and objects between builds.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -tags nomsgpack,grpcnotrace,nethttpomithttp2,nopgxregisterdefaulttypes \
    -ldflags='-s -w -funcalign=16' -o /out/shop ./cmd/shop

# The shop with every server that it can start, for `--engine local` and `explore --app`:
#
#   docker build --target with-servers -t oversell .
#   docker run --rm oversell verify --engine local --strategy redis
#   docker run --rm --privileged --user 0 -v "$PWD:/work" oversell explore --app oversell.yaml
#
# To test a program, use it as the base of an image that has the program's runtime, too.
FROM debian:12.12-slim AS with-servers
# gcc compiles the clock that the fault clock-jump preloads. Debian starts no service in an image build.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        mariadb-server galera-4 rsync postgresql pgbouncer redis-server zookeeper default-jre-headless etcd-server \
        gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/shop /usr/local/bin/shop
WORKDIR /work
USER 65534:65534
ENTRYPOINT ["shop"]
CMD ["rush", "--engine", "local"]

# Without servers, and the default. Alpine and not scratch: the health check needs wget.
FROM alpine:3.22.2 AS shop
COPY --from=build /out/shop /usr/local/bin/shop
# nobody, by number, so that a runtime can see that it is not root.
USER 65534:65534
EXPOSE 8080
ENTRYPOINT ["shop"]
# In a container loopback reaches nobody. Restocking then needs SHOP_ADMIN_TOKEN.
CMD ["serve", "--addr", "0.0.0.0:8080"]
