FROM golang:1.26.8-alpine AS build
WORKDIR /src
COPY . .
# The mounts keep modules and objects between builds.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -tags nomsgpack -trimpath -ldflags='-s -w' -o /out/shop ./cmd/shop

# Alpine and not scratch: the health check needs wget.
FROM alpine:3.22.2
COPY --from=build /out/shop /usr/local/bin/shop
# nobody, by number, so that a runtime can see that it is not root.
USER 65534:65534
EXPOSE 8080
ENTRYPOINT ["shop"]
# In a container loopback reaches nobody. Restocking then needs SHOP_ADMIN_TOKEN.
CMD ["serve", "--addr", "0.0.0.0:8080"]
