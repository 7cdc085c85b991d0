// Sends the requests of a recording to a real server again, and writes the server's replies into the file.
//
//   node test/engine/recordings/record.mjs sglang-0.5.23 http://127.0.0.1:30000
//
// The server serves models/storefront-2m under the name "storefront-2m", with a context of 4,096 tokens;
// interop/servers.mjs installs and starts SGLang, vLLM and llama.cpp's server so. To add a request, add a
// line `{"name", "request": {"method", "path", "body"}}` to the unpacked file, and record.
//
// A line with `background` stays in flight while the next line is sent one second later (what follows
// aborts it). A line with `closeAfterMs` closes its connection then, and has no reply.
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { gunzipSync, gzipSync } from "node:zlib";

const [name, url] = process.argv.slice(2);
if (url === undefined) throw new Error("expected the name of a recording and the URL of a server");
const file = new URL(`recorded/${name}.jsonl.gz`, import.meta.url);
const rows = gunzipSync(readFileSync(file))
  .toString("utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));

/** Resolves with the reply, or with `undefined` if the connection ends before the reply does. */
function send({ request: { method, path, body }, closeAfterMs }) {
  const text = typeof body === "string" ? body : body && JSON.stringify(body);
  return new Promise((resolve) => {
    const headers = text
      ? { "content-type": "application/json", "content-length": Buffer.byteLength(text) }
      : {};
    const outgoing = http.request(url + path, { method, headers }, (reply) => {
      const { date: _date, ...kept } = reply.headers;
      reply.toArray().then(
        (parts) =>
          resolve({
            status: reply.statusCode,
            headers: kept,
            text: Buffer.concat(parts).toString("utf8"),
          }),
        () => resolve(undefined),
      );
    });
    outgoing.on("error", () => resolve(undefined));
    if (closeAfterMs !== undefined) setTimeout(() => outgoing.destroy(), closeAfterMs);
    outgoing.end(text ?? undefined);
  });
}

const pending = [];
for (const row of rows) {
  const sent = send(row).then((response) => {
    console.log(row.name, response?.status ?? "(no reply)");
    if (response === undefined) delete row.response;
    else row.response = response;
  });
  if (row.background) {
    pending.push(sent);
    await sleep(1000);
  } else {
    await sent;
  }
}
await Promise.all(pending);
writeFileSync(file, gzipSync(rows.map((row) => `${JSON.stringify(row)}\n`).join(""), { level: 9 }));
