# The command line, without what builds it. `docker build -t turnwright .`
FROM node:22-bookworm-slim AS build
WORKDIR /source
COPY . .
# Builds it as well; what is packed is what npm would publish.
RUN npm ci && npm pack --ignore-scripts --pack-destination /

FROM node:22-bookworm-slim
COPY --from=build /turnwright-*.tgz /tmp/
RUN npm install --global /tmp/turnwright-*.tgz && rm -r /tmp/turnwright-*.tgz /root/.npm
# Volumes are made with the owner of what is below them.
RUN mkdir -p /work/runs /home/node/.cache/huggingface && chown -R node /work /home/node/.cache
USER node
WORKDIR /work
ENTRYPOINT ["turnwright"]
CMD ["--help"]
