# The shop as one static binary; see docker-compose.yml for its PostgreSQL.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /shop ./cmd/shop

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /shop /shop
EXPOSE 8080
ENTRYPOINT ["/shop"]
