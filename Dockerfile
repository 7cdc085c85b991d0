# The command line without its build tools: docker build -t turnwright .
# Node 24 plays a run with a fifth less CPU than Node 20.
FROM node:24-bookworm-slim AS build
WORKDIR /source
# A layer of its own: a change of the sources downloads no packages again.
COPY package.json package-lock.json .npmrc ./
COPY packages/chat-template/package.json packages/chat-template/
COPY packages/create-turnwright/package.json packages/create-turnwright/
COPY packages/python-values/package.json packages/python-values/
COPY packages/tool-parsers/package.json packages/tool-parsers/
RUN npm ci --ignore-scripts
COPY . .
# Packs the files that npm publishes. Without --ignore-scripts, npm would build them a second time.
RUN node scripts/build.mjs && node scripts/api-docs.mjs && npm pack --ignore-scripts --pack-destination /

FROM node:24-bookworm-slim
COPY --from=build /turnwright-*.tgz /tmp/
# Adds the packages for --queue and --shared s3://….
RUN npm install --global /tmp/turnwright-*.tgz bullmq@6 ioredis@6 aws4fetch@1 && rm -r /tmp/turnwright-*.tgz /root/.npm
# Environments below /work can import the packages that those of `turnwright init` import.
RUN mkdir -p /work/node_modules && cd /work/node_modules && \
  ln -s /usr/local/lib/node_modules/turnwright turnwright && \
  ln -s /usr/local/lib/node_modules/turnwright/node_modules/zod zod
# A new volume gets the owner of the folder that it is mounted on.
RUN mkdir -p /work/runs /home/node/.cache/huggingface && chown -R node /work /home/node/.cache
# A nursery for the garbage of a thousand live episodes (docs/runs.md).
ENV NODE_OPTIONS=--max-semi-space-size=64
USER node
WORKDIR /work
ENTRYPOINT ["turnwright"]
CMD ["--help"]
