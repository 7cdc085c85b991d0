import { createHash } from "node:crypto";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { makeTar } from "./make-tar.fixture.ts";
import { smallTauCheckout } from "./small-tau-checkout.fixture.ts";
import { pullTauBench, type PinnedCommit } from "./pull-bundle.ts";

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

const pinned: PinnedCommit = {
  commit: "0123456789abcdef0123456789abcdef01234567",
  inputs: new Map(Object.entries(smallTauCheckout).map(([name, text]) => [name, sha256(text)])),
};

function archiveOf(files: Readonly<Record<string, string>>): Buffer {
  const entries = Object.entries({ ...files, "large.bin": "x".repeat(4_000_000) });
  return gzipSync(
    makeTar([
      { path: "pax_global_header", type: "g", content: "12 comment=0\n" },
      ...entries.map(([name, content]) => ({ path: `tau-bench-0123456/${name}`, content })),
    ]),
    { level: 0 },
  );
}

const archive = archiveOf(smallTauCheckout);

interface Running extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

async function serve(handler: Handler, onConnect?: (target: string) => number): Promise<Running> {
  const server = createServer(handler);
  server.on("connect", (incoming, client) => {
    const port = onConnect?.(incoming.url ?? "");
    if (port === undefined || port === 0) {
      client.end("HTTP/1.1 403 Forbidden\r\n\r\n");
      return;
    }
    const target = connect(port, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      target.pipe(client).pipe(target);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/archive.tar.gz`,
    port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Sends the bytes of a requested range; the first `breaks` replies end after half of them. */
function archiveServer({ breaks = 0, tag = '"v1"', content = archive }): {
  readonly handler: Handler;
  readonly ranges: (string | undefined)[];
} {
  const ranges: (string | undefined)[] = [];
  return {
    ranges,
    handler: ({ headers }, response) => {
      ranges.push(headers.range);
      const isRest = headers.range !== undefined && headers["if-range"] === tag;
      const start = isRest ? Number(/\d+/.exec(headers.range ?? "")?.[0]) : 0;
      const body = content.subarray(start);
      response.writeHead(isRest ? 206 : 200, {
        "content-length": body.length,
        ...(tag !== "" && { etag: tag }),
        ...(isRest && {
          "content-range": `bytes ${start}-${content.length - 1}/${content.length}`,
        }),
      });
      if (ranges.length > breaks) {
        response.end(body);
        return;
      }
      const half = body.subarray(0, Math.floor(body.length / 2));
      response.write(half, () => response.socket?.end());
    },
  };
}

let dir = "";
let to = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-pull-"));
  to = path.join(dir, "bundle");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(dir, { recursive: true });
});

const { signal } = new AbortController();
const pull = async (url: string, maxAttempts = 3) =>
  await pullTauBench({ to, url, pinned, signal, maxAttempts, pauseMs: 1 });

describe("pullTauBench()", () => {
  test("downloads, checks and imports, and leaves no other files", async () => {
    const { handler } = archiveServer({});
    await using server = await serve(handler);
    const { manifest, isNew } = await pull(server.url);
    expect(isNew).toBe(true);
    expect(Object.keys(manifest.inputs)).toHaveLength(pinned.inputs.size);
    expect(await readFile(path.join(to, "retail/wiki.md"), "utf8")).toBe("# Policy é\n");
    expect(await readdir(dir)).toEqual(["bundle"]);
  });

  test("resumes after the connection broke", async () => {
    const { handler, ranges } = archiveServer({ breaks: 2 });
    await using server = await serve(handler);
    await pull(server.url);
    const starts = ranges.map((range) => Number(/^bytes=(\d+)-$/.exec(range ?? "bytes=0-")?.[1]));
    expect(starts).toHaveLength(3);
    expect(starts[0]).toBe(0);
    expect(starts[1]).toBeGreaterThan(0);
    expect(starts[2]).toBeGreaterThan(starts[1] ?? 0);
    expect(await readdir(dir)).toEqual(["bundle"]);
  });

  test("resumes in the next call if all attempts broke", async () => {
    const { handler, ranges } = archiveServer({ breaks: 2 });
    await using server = await serve(handler);
    await expect(pull(server.url, 2)).rejects.toThrow(`Cannot download ${server.url}`);
    expect(await readdir(dir)).toEqual([".bundle.pulling"]);
    await pull(server.url, 1);
    expect(ranges).toHaveLength(3);
    expect(ranges[2]).toMatch(/^bytes=\d+-$/);
    expect(await readdir(dir)).toEqual(["bundle"]);
  });

  test("starts over if the server cannot resume, and leaves no files", async () => {
    const { handler, ranges } = archiveServer({ breaks: 1, tag: "" });
    await using server = await serve(handler);
    await expect(pull(server.url, 1)).rejects.toThrow("Cannot download");
    expect(await readdir(dir)).toEqual([]);
    await pull(server.url);
    expect(ranges).toEqual([undefined, undefined]);
  });

  test("starts over if the file has changed since", async () => {
    const old = archiveServer({ breaks: 9, tag: '"v0"' });
    const now = archiveServer({ tag: '"v1"' });
    let handler = old.handler;
    await using server = await serve((incoming, response) => handler(incoming, response));
    await expect(pull(server.url, 1)).rejects.toThrow("Cannot download");
    handler = now.handler;
    await pull(server.url, 1);
    expect(now.ranges[0]).toMatch(/^bytes=/);
  });

  test.each([
    [
      "another file",
      archiveOf({ ...smallTauCheckout, "tau_bench/types.py": "import os\n" }),
      "Cannot use tau_bench/types.py from http://",
    ],
    [
      "a file too few",
      archiveOf(Object.fromEntries(Object.entries(smallTauCheckout).slice(1))),
      "it lacks 1 files, such as tau_bench/envs/retail/data/orders.json",
    ],
    ["half an archive", archive.subarray(0, 9_000), "unexpected end of file"],
    ["no archive", Buffer.from("<html>sign in</html>"), "incorrect header check"],
  ])("refuses %s, and leaves no files", async (_, content, message) => {
    await using server = await serve(archiveServer({ content }).handler);
    await expect(pull(server.url)).rejects.toThrow(message);
    expect(await readdir(dir)).toEqual([]);
  });

  test("reports the server's answer, and retries only if that may help", async () => {
    const statuses: number[] = [];
    await using server = await serve((incoming, response) => {
      const status = incoming.url === "/busy" ? 503 : 404;
      statuses.push(status);
      response.writeHead(status).end();
    });
    await expect(pull(server.url)).rejects.toThrow("the server answered 404");
    const busy = `http://127.0.0.1:${server.port}/busy`;
    await expect(pull(busy)).rejects.toThrow("the server answered 503");
    expect(statuses).toEqual([404, 503, 503, 503]);
  });

  test("follows redirects, a few", async () => {
    const { handler } = archiveServer({});
    await using server = await serve((incoming, response) => {
      if (incoming.url === "/archive.tar.gz") handler(incoming, response);
      else
        response
          .writeHead(302, { location: incoming.url === "/1" ? "/archive.tar.gz" : "/2" })
          .end();
    });
    await expect(pull(`http://127.0.0.1:${server.port}/2`)).rejects.toThrow(
      "more than 5 redirects",
    );
    await pull(`http://127.0.0.1:${server.port}/1`);
  });

  test("uses the proxy of the environment variables", async () => {
    const { handler } = archiveServer({});
    await using server = await serve(handler);
    const seen: string[] = [];
    await using proxy = await serve(
      (incoming, response) => {
        seen.push(incoming.url ?? "");
        const forwarded = request(incoming.url ?? "", (reply) => {
          response.writeHead(reply.statusCode ?? 500, reply.headers);
          reply.pipe(response);
        });
        forwarded.end();
      },
      (target) => {
        seen.push(target);
        return server.port;
      },
    );
    for (const name of ["http_proxy", "HTTP_PROXY"])
      vi.stubEnv(name, `http://127.0.0.1:${proxy.port}`);
    for (const name of ["no_proxy", "NO_PROXY"]) vi.stubEnv(name, "");
    await pull("http://archive.example/archive.tar.gz");
    expect(seen).toHaveLength(1);
    expect(seen[0]).toContain("archive.example");
  });

  test("opens a tunnel through a proxy for HTTPS", async () => {
    const targets: string[] = [];
    await using proxy = await serve(
      (_incoming, response) => response.writeHead(500).end(),
      (target) => {
        targets.push(target);
        return 0;
      },
    );
    for (const name of ["https_proxy", "HTTPS_PROXY"])
      vi.stubEnv(name, `http://127.0.0.1:${proxy.port}`);
    for (const name of ["no_proxy", "NO_PROXY"]) vi.stubEnv(name, "");
    await expect(pull("https://archive.example/a.tar.gz", 1)).rejects.toThrow("Cannot download");
    expect(targets).toEqual(["archive.example:443"]);
    expect(await readdir(dir)).toEqual([]);
  });

  test("stops when the signal aborts", async () => {
    const controller = new AbortController();
    await using server = await serve((_incoming, response) => {
      response.writeHead(200, { "content-length": 1_000 });
      response.write("x", () => controller.abort(new Error("enough")));
    });
    await expect(
      pullTauBench({ to, url: server.url, pinned, signal: controller.signal }),
    ).rejects.toThrow("enough");
    expect(await readdir(dir)).toEqual([]);
  });

  test("stops while it waits for a retry, with the signal's reason", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    await using server = await serve((_incoming, response) => {
      response.writeHead(503).end();
      setImmediate(() => setImmediate(() => controller.abort(reason)));
    });
    const { signal } = controller;
    await expect(
      pullTauBench({ to, url: server.url, pinned, signal, pauseMs: 60_000 }),
    ).rejects.toBe(reason);
  });
});
