import { createHash } from "node:crypto";
import { lstat, mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findModelFolder } from "./find-model-folder.ts";

const commit = "c".repeat(40);
const tokenizer = JSON.stringify({ model: "x".repeat(5000) });
const template = "{{ messages }}";

function gitHash(text: string): string {
  return createHash("sha1")
    .update(`blob ${Buffer.byteLength(text)}\0${text}`)
    .digest("hex");
}

const siblings: Record<string, unknown>[] = [
  {
    rfilename: "tokenizer.json",
    blobId: "f".repeat(40),
    size: tokenizer.length,
    lfs: { sha256: createHash("sha256").update(tokenizer).digest("hex"), size: tokenizer.length },
  },
  { rfilename: "chat_template.jinja", blobId: gitHash(template), size: template.length },
  { rfilename: "model.safetensors", blobId: "a".repeat(40), size: 5e9 },
];

let scratch = "";
let requests: string[] = [];
let answer: (request: IncomingMessage, reply: ServerResponse) => boolean = () => false;
const hub = createServer((request, reply) => {
  requests.push(
    `${request.url} ${request.headers.authorization ?? "-"} ${request.headers.range ?? "-"}`,
  );
  if (answer(request, reply)) return;
  const files: Record<string, string> = {
    [`/acme/small/resolve/${commit}/tokenizer.json`]: tokenizer,
    [`/acme/small/resolve/${commit}/chat_template.jinja`]: template,
  };
  if (request.url?.startsWith("/api/models/acme/small/revision/") === true) {
    reply.end(JSON.stringify({ sha: commit, siblings }));
  } else if (files[request.url ?? ""] === undefined) {
    reply.writeHead(404).end();
  } else {
    const start = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const text = files[request.url!]!;
    const range =
      start === 0 ? {} : { "content-range": `bytes ${start}-${text.length - 1}/${text.length}` };
    reply.writeHead(start === 0 ? 200 : 206, {
      etag: '"t"',
      "content-length": text.length - start,
      ...range,
    });
    reply.end(text.slice(start));
  }
});

beforeEach(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-hub-"));
  requests = [];
  answer = () => false;
  await new Promise<void>((resolve) => hub.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  hub.closeAllConnections();
  await new Promise((resolve) => hub.close(resolve));
  await rm(scratch, { recursive: true });
});

async function fetch(model: string, more: Record<string, string> = {}): Promise<string> {
  const { port } = hub.address() as AddressInfo;
  const env = { HF_HOME: scratch, HF_ENDPOINT: `http://127.0.0.1:${port}`, ...more };
  return await findModelFolder(model, { env });
}

describe("hf:OWNER/NAME", () => {
  test("downloads tokenizer and template into the hub's own layout, once", async () => {
    const dir = await fetch("hf:acme/small", { HF_TOKEN: "hf_secret" });
    const model = path.join(scratch, "hub/models--acme--small");
    expect(dir).toBe(path.join(model, "snapshots", commit));
    expect((await readdir(dir)).toSorted()).toEqual(["chat_template.jinja", "tokenizer.json"]);
    expect(await readFile(path.join(dir, "tokenizer.json"), "utf8")).toBe(tokenizer);
    expect((await lstat(path.join(dir, "tokenizer.json"))).isSymbolicLink()).toBe(true);
    expect(await readFile(path.join(model, "refs/main"), "utf8")).toBe(commit);
    expect((await readdir(path.join(model, "blobs"))).length).toBe(2);
    expect(requests.map((line) => line.split(" ")[1])).toEqual(requests.map(() => "Bearer"));
    requests = [];
    expect(await fetch("hf:acme/small")).toBe(dir);
    expect(requests).toEqual(["/api/models/acme/small/revision/main?blobs=true - -"]);
    requests = [];
    expect(await fetch(`hf:acme/small@${commit}`)).toBe(dir);
    expect(await fetch("hf:acme/small", { HF_HUB_OFFLINE: "1" })).toBe(dir);
    expect(await findModelFolder(model)).toBe(dir);
    expect(requests).toEqual([]);
  });

  test("uses the token of the hub's login, and keeps cached files if the hub is down", async () => {
    await writeFile(path.join(scratch, "token"), "hf_file\n");
    const dir = await fetch("hf:acme/small@v1");
    expect(requests[0]).toBe("/api/models/acme/small/revision/v1?blobs=true Bearer hf_file -");
    answer = (_, reply) => {
      reply.writeHead(503).end();
      return true;
    };
    expect(await fetch("hf:acme/small@v1")).toBe(dir);
    await expect(fetch("hf:acme/small@v2")).rejects.toThrow("cannot be reached: it answers 503");
  });

  test("finds a renamed model, and sends the token to no other host", async () => {
    const { port } = hub.address() as AddressInfo;
    answer = ({ url = "" }, reply) => {
      if (!url.includes("/acme/old")) return false;
      const location = url.replace("/acme/old", "/acme/small");
      // The hub returns a path; a mirror may redirect to another host.
      const host = url.startsWith("/api/") ? "" : `http://localhost:${port}`;
      reply.writeHead(307, { location: `${host}${location}` }).end();
      return true;
    };
    const dir = await fetch("hf:acme/old", { HF_TOKEN: "hf_secret" });
    expect(await readFile(path.join(dir, "tokenizer.json"), "utf8")).toBe(tokenizer);
    const tokenRequests = requests.filter((line) => line.includes("Bearer hf_secret"));
    expect(tokenRequests.filter((line) => line.startsWith("/acme/small"))).toEqual([]);
    answer = ({ url = "" }, reply) => {
      if (!url.startsWith("/api/")) return false;
      reply.writeHead(308, { location: url }).end();
      return true;
    };
    await expect(fetch("hf:acme/round")).rejects.toThrow("more than 5 redirects");
  });

  test("continues after a broken connection, and sends the token to no other host", async () => {
    const { port } = hub.address() as AddressInfo;
    let isBroken = false;
    answer = ({ url, headers }, reply) => {
      if (url?.endsWith("tokenizer.json") !== true) return false;
      if (headers.host?.startsWith("127.") === true) {
        reply.writeHead(302, { location: `http://localhost:${port}${url}` }).end();
        return true;
      }
      if (isBroken) return false;
      isBroken = true;
      reply.writeHead(200, { etag: '"t"', "content-length": tokenizer.length });
      const blobs = path.join(scratch, "hub/models--acme--small/blobs");
      const partSize = async (): Promise<number | undefined> => {
        const part = (await readdir(blobs)).find((name) => name.endsWith(".incomplete"));
        return part === undefined ? part : (await stat(path.join(blobs, part))).size;
      };
      const breakOff = async (): Promise<void> => {
        // As soon as the file is on the disk.
        while ((await partSize().catch(() => undefined)) !== 1000) await setImmediate();
        reply.destroy();
      };
      reply.write(tokenizer.slice(0, 1000), () => void breakOff());
      return true;
    };
    const dir = await fetch("hf:acme/small", { HF_TOKEN: "hf_secret" });
    expect(await readFile(path.join(dir, "tokenizer.json"), "utf8")).toBe(tokenizer);
    const blob = requests.filter((line) => line.includes("tokenizer.json"));
    expect(blob.map((line) => line.split(" ").slice(1).join(" "))).toEqual([
      "Bearer hf_secret -",
      "- -",
      "Bearer hf_secret bytes=1000-",
      "- bytes=1000-",
    ]);
  });

  test.each<[string, number, string]>([
    [
      "hf:acme/private",
      401,
      "answers 401, expected a model that is public, or a token in HF_TOKEN",
    ],
    ["hf:acme/none", 404, "answers 404, expected an existing model"],
    ["hf:acme/small@v9", 404, "answers 404, expected an existing model and revision"],
  ])("%s is refused with a remedy for %i", async (model, status, message) => {
    answer = (_, reply) => {
      reply.writeHead(status).end();
      return true;
    };
    await expect(fetch(model)).rejects.toThrow(message);
  });

  test("refuses a file that is too large or differs from the hub's hash, and a model without tokenizer", async () => {
    const list = (files: readonly object[]) => {
      answer = ({ url }, reply) => {
        if (url?.startsWith("/api/") !== true) return false;
        reply.end(JSON.stringify({ sha: commit, siblings: files }));
        return true;
      };
    };
    list([{ ...siblings[0], size: 1e9, lfs: { sha256: "a".repeat(64), size: 1e9 } }]);
    await expect(fetch("hf:acme/small")).rejects.toThrow("its tokenizer.json has 1000000000 bytes");
    list([{ ...siblings[0], lfs: { sha256: "a".repeat(64), size: tokenizer.length } }]);
    await expect(fetch("hf:acme/small")).rejects.toThrow(
      "its content is not what the hub announced",
    );
    list([siblings[2]!]);
    await expect(fetch("hf:acme/small")).rejects.toThrow("it has no tokenizer.json");
    answer = (_, reply) => {
      reply.end("<html>");
      return true;
    };
    await expect(fetch("hf:acme/small")).rejects.toThrow("does not list its files");
  });

  test("reads a list with oddly listed other files and null sizes", async () => {
    const odd = [
      null,
      "a.bin",
      { rfilename: null },
      { rfilename: "a.bin", blobId: "none", size: "5", lfs: { sha256: 1 } },
    ];
    answer = (request, reply) => {
      if (request.url?.startsWith("/api/") !== true) return false;
      const listed = siblings.map((file) => ({ lfs: null, ...file, size: null }));
      reply.end(JSON.stringify({ sha: commit, siblings: [...odd, ...listed] }));
      return true;
    };
    expect(await readdir(await fetch("hf:acme/small"))).toEqual(
      expect.arrayContaining(["tokenizer.json", "chat_template.jinja"]),
    );
  });

  test("refuses a list without the hash of a file, instead of omitting that file", async () => {
    answer = ({ url }, reply) => {
      if (url?.startsWith("/api/") !== true) return false;
      const config = { rfilename: "tokenizer_config.json", size: 2 };
      reply.end(JSON.stringify({ sha: commit, siblings: [...siblings, config] }));
      return true;
    };
    await expect(fetch("hf:acme/small")).rejects.toThrow(
      "Cannot fetch hf:acme/small: the hub's answer has no hash of its tokenizer_config.json",
    );
  });

  test("names a hub that cannot be reached, or that refuses, without the password in its address", async () => {
    const { port } = hub.address() as AddressInfo;
    const withPassword = { HF_ENDPOINT: `http://us3r:s3cretPASS@127.0.0.1:${port}/` };
    await expect(fetch("hf:acme/none", withPassword)).rejects.toThrow(
      new RegExp(`^Cannot fetch hf:acme/none: http://127\\.0\\.0\\.1:${port} answers 404`),
    );
    const refused = { HF_ENDPOINT: "http://us3r:s3cretPASS@127.0.0.1:1" };
    await expect(fetch("hf:acme/none", refused)).rejects.toThrow(
      /^Cannot fetch hf:acme\/none: http:\/\/127\.0\.0\.1:1 cannot be reached: (?!.*(?:us3r|s3cretPASS))/,
    );
  });

  test.each([
    ["http://us3r:s3cretPASS@127.0.0.1:99999", "…@127.0.0.1:99999"],
    ["http://us3r:s3cr#etPASS@127.0.0.1:1", "…@127.0.0.1:1"],
    ["us3r:s3cretPASS@127.0.0.1:1", "…@127.0.0.1:1"],
    ["ftp://127.0.0.1", "ftp://127.0.0.1"],
  ])("refuses the address %s of a hub", async (address, shown) => {
    await expect(fetch("hf:acme/small", { HF_ENDPOINT: address })).rejects.toThrow(
      `Cannot use HF_ENDPOINT: it is ${shown}, expected an address such as https://huggingface.co ` +
        "(characters of a password such as / and # are written %2F and %23)",
    );
  });

  test("does not read the address of a hub that is not asked", async () => {
    await fetch("hf:acme/small");
    const HF_ENDPOINT = "us3r:s3cretPASS@127.0.0.1:1";
    const dir = await fetch("hf:acme/small", { HF_ENDPOINT, HF_HUB_OFFLINE: "1" });
    expect(path.basename(dir)).toBe(commit);
    expect(await fetch(`hf:acme/small@${commit}`, { HF_ENDPOINT })).toBe(dir);
  });

  test("describes the form of a name", async () => {
    await expect(findModelFolder("acme/small")).rejects.toThrow(
      "Cannot find the model acme/small: there is no such folder; for the Hugging Face hub write hf:acme/small",
    );
    for (const name of ["hf:small", "hf:../small", "hf:acme/..", "hf:acme/small@../x"]) {
      await expect(fetch(name)).rejects.toThrow("expected hf:OWNER/NAME or hf:OWNER/NAME@REVISION");
    }
    await expect(fetch("hf:acme/small", { HF_HUB_OFFLINE: "1" })).rejects.toThrow(
      "HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set",
    );
    await mkdir(path.join(scratch, "acme/small"), { recursive: true });
    expect(await findModelFolder(path.join(scratch, "acme/small"))).toBe(
      path.join(scratch, "acme/small"),
    );
  });
});

describe("hf:OWNER/NAME, with other programs using the cache", () => {
  const pinned = `hf:acme/small@${commit}`;
  const config = '{"bos_token":"<s>"}';
  const all = ["chat_template.jinja", "tokenizer.json", "tokenizer_config.json"];
  let model = "";
  let snapshot = "";
  /** The hub has a third file, and drops the connection for `broken`. */
  let broken = "";
  beforeEach(() => {
    model = path.join(scratch, "hub/models--acme--small");
    snapshot = path.join(model, "snapshots", commit);
    broken = "";
    answer = ({ url = "" }, reply) => {
      const name = path.basename(url);
      if (url.startsWith("/api/")) {
        const size = config.length;
        const third = { rfilename: "tokenizer_config.json", blobId: gitHash(config), size };
        reply.end(JSON.stringify({ sha: commit, siblings: [...siblings, third] }));
        return true;
      }
      if (name === broken) {
        reply.writeHead(403).end();
        return true;
      }
      if (name !== "tokenizer_config.json") return false;
      reply.end(config);
      return true;
    };
  });

  /** Returns which of the three files exist with the right content. */
  async function completeFiles(): Promise<readonly string[]> {
    const expected: Record<string, string> = {
      "tokenizer.json": tokenizer,
      "tokenizer_config.json": config,
      "chat_template.jinja": template,
    };
    const found: string[] = [];
    for (const name of all) {
      const text = await readFile(path.join(snapshot, name), "utf8").catch(() => undefined);
      if (text === expected[name]) found.push(name);
    }
    return found;
  }

  test("is downloaded by many at once without partial files", async () => {
    const dirs = await Promise.all(Array.from({ length: 9 }, async () => await fetch(pinned)));
    expect(new Set(dirs)).toEqual(new Set([snapshot]));
    expect(await completeFiles()).toEqual(all);
    const left = await readdir(model, { recursive: true });
    expect(left.filter((name) => /incomplete|\.tag/.test(name))).toEqual([]);
    expect((await readdir(path.join(model, "blobs"))).length).toBe(3);
  });

  test("is complete only with all files, and a broken download continues", async () => {
    broken = "tokenizer_config.json";
    await expect(fetch(pinned)).rejects.toThrow("the server answered 403");
    const lacks = `and ${snapshot} lacks tokenizer_config.json; expected a complete snapshot`;
    await expect(fetch(pinned, { HF_HUB_OFFLINE: "1" })).rejects.toThrow(lacks);
    await expect(findModelFolder(snapshot)).rejects.toThrow(
      `Cannot use the model in ${snapshot}: this part of the Hugging Face hub's cache lacks ` +
        "tokenizer_config.json; expected a complete snapshot, which hf:OWNER/NAME downloads",
    );
    broken = "";
    requests = [];
    expect(await fetch(pinned)).toBe(snapshot);
    expect(requests.map((line) => path.basename(line.split(" ")[0]!))).toEqual([
      `${commit}?blobs=true`,
      "tokenizer_config.json",
    ]);
    expect(await completeFiles()).toEqual(all);
    expect(await findModelFolder(snapshot)).toBe(snapshot);
  });

  test("downloads a file again that was removed, truncated or changed", async () => {
    await fetch(pinned);
    await rm(path.join(snapshot, "tokenizer_config.json"));
    expect(await fetch(pinned)).toBe(snapshot);
    expect(await completeFiles()).toEqual(all);
    // The link remains, its blob does not.
    await rm(path.join(model, "blobs", gitHash(config)));
    await writeFile(path.join(model, "blobs", gitHash(template)), template.slice(1));
    await expect(fetch(pinned, { HF_HUB_OFFLINE: "1" })).rejects.toThrow("lacks ");
    expect(await fetch(pinned)).toBe(snapshot);
    expect(await completeFiles()).toEqual(all);
  });

  test("completes a download of the hub's own library, and leaves its partial files alone", async () => {
    const blob = createHash("sha256").update(tokenizer).digest("hex");
    const unfinished = path.join(model, "blobs", `${blob}.incomplete`);
    await mkdir(path.join(model, "blobs"), { recursive: true });
    await mkdir(path.join(model, "refs"));
    await mkdir(snapshot, { recursive: true });
    await writeFile(unfinished, "theirs");
    await writeFile(path.join(model, "refs/main"), commit);
    // A copy, as on a system without links.
    await writeFile(path.join(snapshot, "tokenizer.json"), tokenizer);
    expect(await fetch("hf:acme/small")).toBe(snapshot);
    expect(await readFile(unfinished, "utf8")).toBe("theirs");
    expect(await completeFiles()).toEqual(all);
    expect((await lstat(path.join(snapshot, "tokenizer.json"))).isFile()).toBe(true);
  });

  test("uses a snapshot of the hub's library offline if each important file is known", async () => {
    const offline = { HF_HUB_OFFLINE: "1" };
    await mkdir(path.join(model, "refs"), { recursive: true });
    await mkdir(snapshot, { recursive: true });
    await writeFile(path.join(model, "refs/main"), commit);
    await writeFile(path.join(snapshot, "tokenizer.json"), tokenizer);
    await expect(fetch("hf:acme/small", offline)).rejects.toThrow("lacks tokenizer_config.json");
    await expect(findModelFolder(model)).rejects.toThrow("lacks tokenizer_config.json");
    // The library marks files that the model does not have.
    const mark = path.join(model, ".no_exist", commit, "tokenizer_config.json");
    await mkdir(path.dirname(mark), { recursive: true });
    await writeFile(mark, "");
    expect(await fetch("hf:acme/small", offline)).toBe(snapshot);
    await rm(mark);
    await writeFile(path.join(snapshot, "tokenizer_config.json"), config);
    expect(await fetch("hf:acme/small", offline)).toBe(snapshot);
    expect(await findModelFolder(model)).toBe(snapshot);
  });

  test("reads a cache that cannot be written, and fails if it must be written", async () => {
    await fetch("hf:acme/small");
    await rm(path.join(model, ".turnwright"), { recursive: true });
    // No folder can be created here, with any rights.
    await writeFile(path.join(model, ".turnwright"), "");
    expect(await fetch("hf:acme/small")).toBe(snapshot);
    expect(await fetch(pinned)).toBe(snapshot);
    const file = path.join(scratch, "file");
    await writeFile(file, "");
    await expect(fetch("hf:acme/small", { HF_HUB_CACHE: file })).rejects.toThrow(
      /^Cannot fetch hf:acme\/small: the cache .*file\/models--acme--small cannot be written: .*, expected HF_HUB_CACHE to name a folder that can$/,
    );
  });
});
