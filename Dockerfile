# The command line, without what builds it. `docker build -t turnwright .`
FROM node:22-bookworm-slim AS build
WORKDIR /source
# By themselves, so that a change of the sources downloads nothing again.
COPY package.json package-lock.json .npmrc ./
COPY packages/chat-template/package.json packages/chat-template/
COPY packages/create-turnwright/package.json packages/create-turnwright/
COPY packages/python-values/package.json packages/python-values/
COPY packages/tool-parsers/package.json packages/tool-parsers/
RUN npm ci --ignore-scripts
COPY . .
# What is packed is what npm would publish, which the scripts of npm's own would build twice.
RUN node scripts/build.mjs && node scripts/api-docs.mjs && npm pack --ignore-scripts --pack-destination /

FROM node:22-bookworm-slim
COPY --from=build /turnwright-*.tgz /tmp/
# With what --queue and --shared s3://… need besides.
RUN npm install --global /tmp/turnwright-*.tgz bullmq@6 ioredis@6 aws4fetch@1 && rm -r /tmp/turnwright-*.tgz /root/.npm
# Environments that are mounted below /work find what those of `turnwright init` import.
RUN mkdir -p /work/node_modules && cd /work/node_modules && \
  ln -s /usr/local/lib/node_modules/turnwright turnwright && \
  ln -s /usr/local/lib/node_modules/turnwright/node_modules/zod zod
# Volumes are made with the owner of what is below them.
RUN mkdir -p /work/runs /home/node/.cache/huggingface && chown -R node /work /home/node/.cache
# A nursery for the garbage of a thousand live episodes (docs/runs.md).
ENV NODE_OPTIONS=--max-semi-space-size=64
USER node
WORKDIR /work
ENTRYPOINT ["turnwright"]
CMD ["--help"]
