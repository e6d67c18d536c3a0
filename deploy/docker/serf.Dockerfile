# syntax=docker/dockerfile:1
# An image of the stock Serf agent, built the same way: there is no official one. It needs nothing from the repository.
#
#   docker build -f deploy/docker/serf.Dockerfile -t serf-sbr/serf deploy/docker
ARG GO_VERSION=1.26

FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-bookworm AS build
ARG SERF_VERSION=v0.11.0
ARG TARGETOS
ARG TARGETARCH
WORKDIR /src
RUN go mod init serf && go get -tool github.com/hashicorp/serf/cmd/serf@${SERF_VERSION}
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w" -o /out/serf github.com/hashicorp/serf/cmd/serf

FROM gcr.io/distroless/static-debian12:nonroot
LABEL org.opencontainers.image.title="serf" \
      org.opencontainers.image.description="Stock Serf agent" \
      org.opencontainers.image.source="https://github.com/hashicorp/serf" \
      org.opencontainers.image.licenses="MPL-2.0"
COPY --from=build /out/serf /serf
USER 65532:65532
EXPOSE 7946/tcp 7946/udp
ENTRYPOINT ["/serf"]
