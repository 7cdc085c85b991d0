import { createHash } from "node:crypto";
import { lstat, readFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import { createGzip } from "node:zlib";
import { packTar } from "modern-tar/fs";

/** A package as `npm pack` has made it. */
export interface PackedPackage {
  /** The package's `package.json`. */
  readonly manifest: { readonly name: string; readonly version: string };
  readonly tarball: string;
}

/** A registry on this machine that has packages in one version each. */
export interface Registry extends AsyncDisposable {
  readonly url: string;
  /** Options with which npm uses this registry, and no other. */
  readonly npmOptions: readonly string[];
  /** The names that `npm publish` has sent, in order. */
  readonly published: readonly string[];
}

interface StoredPackage {
  readonly manifest: PackedPackage["manifest"];
  readonly tarball: Buffer;
}

/**
 * Serves packages as npm requests them, a document for each and its tarball, and accepts `npm publish`. A package that
 * was not published comes from `modules`, a `node_modules` folder, if given.
 */
export async function startRegistry({ modules }: { readonly modules?: string } = {}) {
  const stored = new Map<string, Promise<StoredPackage | undefined>>();
  const published: string[] = [];
  const find = async (name: string): Promise<StoredPackage | undefined> => {
    if (!stored.has(name)) stored.set(name, packInstalled(modules, name));
    return await stored.get(name);
  };
  const server = createServer((request, response) => {
    void (async () => {
      const [name = "", file] = decodeURIComponent(request.url ?? "")
        .slice(1)
        .split("/-/");
      const json = { "content-type": "application/json" };
      if (request.method === "PUT") {
        stored.set(name, Promise.resolve(await readPublished(request)));
        published.push(name);
        response.writeHead(201, json).end("{}");
        return;
      }
      const found = await find(name);
      if (found === undefined) {
        response.writeHead(404, json).end('{"error":"not found"}');
        return;
      }
      const { manifest, tarball } = found;
      if (file !== undefined) {
        response.writeHead(200, { "content-type": "application/octet-stream" }).end(tarball);
        return;
      }
      const dist = {
        tarball: `${urlOf()}${name}/-/${path.posix.basename(name)}-${manifest.version}.tgz`,
        integrity: `sha512-${createHash("sha512").update(tarball).digest("base64")}`,
      };
      const document = {
        name,
        "dist-tags": { latest: manifest.version },
        versions: { [manifest.version]: { ...manifest, dist } },
      };
      response.writeHead(200, json).end(JSON.stringify(document));
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const urlOf = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const url = urlOf();
  const registry: Registry = {
    url,
    // npm publishes only if it has a token, which this registry does not read.
    npmOptions: ["--registry", url, `--${url.slice("http:".length)}:_authToken=none`],
    published,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return registry;
}

/** Reads the body of `npm publish`: the package's document, with its tarball in base64. */
async function readPublished(request: IncomingMessage): Promise<StoredPackage> {
  const { versions, _attachments } = JSON.parse((await buffer(request)).toString()) as {
    readonly versions: Readonly<Record<string, PackedPackage["manifest"]>>;
    readonly _attachments: Readonly<Record<string, { readonly data: string }>>;
  };
  const [manifest] = Object.values(versions);
  const [attachment] = Object.values(_attachments);
  return { manifest: manifest!, tarball: Buffer.from(attachment!.data, "base64") };
}

/** Packs a package of a `node_modules` folder, without the packages within it. A link is a package of this repository. */
async function packInstalled(
  modules: string | undefined,
  name: string,
): Promise<StoredPackage | undefined> {
  const folder = path.join(modules ?? "", name);
  const text = await readFile(path.join(folder, "package.json"), "utf8").catch(() => undefined);
  if (modules === undefined || text === undefined) return undefined;
  if ((await lstat(folder)).isSymbolicLink()) return undefined;
  const nested = path.join(folder, "node_modules");
  const tar = packTar(folder, {
    filter: (file) => path.resolve(folder, file) !== nested,
    map: (header) => ({ ...header, name: `package/${header.name}` }),
  });
  const tarball = await buffer(tar.pipe(createGzip({ level: 1 })));
  return { manifest: JSON.parse(text) as PackedPackage["manifest"], tarball };
}
