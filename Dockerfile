# The shop as one static binary; see docker-compose.yml for its PostgreSQL.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /shop ./cmd/shop

FROM debian:bookworm-slim
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /shop /shop
# /data holds the local Stripe's journal; a volume takes over its owner.
RUN useradd --system --uid 10001 shop && mkdir /data && chown shop /data
USER shop
EXPOSE 8080
ENTRYPOINT ["/shop"]
