import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A package as `npm pack` has made it. */
export interface PackedPackage {
  /** The contents of its `package.json`. */
  readonly manifest: { readonly name: string; readonly version: string };
  readonly tarball: string;
}

/** A registry on this machine that has given packages in one version each, and no others. */
export interface Registry extends AsyncDisposable {
  readonly url: string;
}

/** Serves packages as npm asks for them: a document for each, and its tarball. */
export async function startRegistry(packages: readonly PackedPackage[]): Promise<Registry> {
  const tarballs = new Map<string, Buffer>();
  for (const { manifest, tarball } of packages) {
    tarballs.set(manifest.name, await readFile(tarball));
  }
  const server = createServer((request, response) => {
    const [name = "", file] = decodeURIComponent(request.url ?? "")
      .slice(1)
      .split("/-/");
    const found = packages.find(({ manifest }) => manifest.name === name);
    const tarball = tarballs.get(name);
    if (found === undefined || tarball === undefined) {
      response.writeHead(404, { "content-type": "application/json" }).end('{"error":"not found"}');
      return;
    }
    if (file !== undefined) {
      response.writeHead(200, { "content-type": "application/octet-stream" }).end(tarball);
      return;
    }
    const { manifest } = found;
    const { port } = server.address() as AddressInfo;
    const dist = {
      tarball: `http://127.0.0.1:${port}/${name}/-/${name}-${manifest.version}.tgz`,
      integrity: `sha512-${createHash("sha512").update(tarball).digest("base64")}`,
    };
    const document = {
      name,
      "dist-tags": { latest: manifest.version },
      versions: { [manifest.version]: { ...manifest, dist } },
    };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(document));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
