import { createHash } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { Redactor } from "../../secrets/redactor.ts";
import { openSharedPlace } from "./open-shared-place.ts";

/** A bucket `b` as S3-compatible stores serve it; asks for a signature, and fails now and then. */
async function startBucket() {
  const objects = new Map<string, Buffer>();
  const asked: string[] = [];
  const failures = { left: 0 };
  const server = http.createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      asked.push(`${method} ${url}`);
      const body = Buffer.concat(parts);
      const end = (status: number, bytes: Buffer | string = ""): void => {
        response.writeHead(status).end(bytes);
      };
      const signed =
        /^AWS4-HMAC-SHA256 Credential=id\/\d{8}\/eu-1\/s3\/aws4_request, SignedHeaders=[\w;-]+, Signature=[0-9a-f]{64}$/;
      if (!signed.test(headers.authorization ?? "")) end(403, "<Code>AccessDenied</Code>");
      else if (failures.left-- > 0) end(503, "<Code>SlowDown</Code>");
      else if (!url.startsWith("/b/")) end(404, "<Code>NoSuchBucket</Code>");
      else if (method === "PUT") {
        const sent = headers["x-amz-content-sha256"];
        const hash = createHash("sha256").update(body).digest("hex");
        if (sent !== "UNSIGNED-PAYLOAD" && sent !== hash) end(400, "<Code>BadDigest</Code>");
        else {
          objects.set(url, body);
          end(200);
        }
      } else if (method === "DELETE") {
        objects.delete(url);
        end(204);
      } else end(objects.has(url) ? 200 : 404, objects.get(url));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    objects,
    asked,
    failures,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const keys = { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "key", AWS_REGION: "eu-1" };

test("files are stored in a bucket under a prefix, and are read back unchanged", async () => {
  await using bucket = await startBucket();
  const env = { ...keys, AWS_ENDPOINT_URL_S3: `${bucket.url}/` };
  const place = (await openSharedPlace("s3://b/runs/", env))!;
  expect(place.shown).toBe("s3://b/runs/");
  const bytes = Buffer.from("x".repeat(300_000));
  bucket.failures.left = 1;
  await place.write("results/r/one.0a", bytes);
  expect([...bucket.objects.keys()]).toEqual(["/b/runs/results/r/one.0a"]);
  expect(bucket.asked).toHaveLength(2);
  expect((await place.read("results/r/one.0a", 300_000))?.equals(bytes)).toBe(true);
  expect((await place.read("results/r/one.0a", 10))?.length).toBe(11);
  expect(await place.read("results/r/two", 10)).toBeUndefined();
  await place.remove("results/r/one.0a");
  expect(bucket.objects.size).toBe(0);
  // Objects cannot grow, so attempts of a lost worker start again.
  expect(place.recordings).toBeUndefined();
});

test("a missing or refused object is reported once, with its reason", async () => {
  await using bucket = await startBucket();
  const env = { ...keys, AWS_ENDPOINT_URL: bucket.url };
  await expect(openSharedPlace("s3://", env)).rejects.toThrow(
    "Cannot use --shared s3://: expected s3://bucket or s3://bucket/prefix",
  );
  await expect(openSharedPlace("s3://b", { AWS_ACCESS_KEY_ID: "id" })).rejects.toThrow(
    "Cannot use --shared s3://…: the variable AWS_SECRET_ACCESS_KEY is not set",
  );
  const other = (await openSharedPlace("s3://other", env))!;
  await expect(other.write("a", Buffer.from("a"))).rejects.toThrow(
    "Cannot use --shared s3://other: there is no such bucket",
  );
  const stranger = (await openSharedPlace("s3://b", { ...env, AWS_ACCESS_KEY_ID: "no" }))!;
  await expect(stranger.write("a", Buffer.from("a"))).rejects.toThrow(
    /403 <Code>AccessDenied<\/Code>$/,
  );
  expect(bucket.asked.filter((call) => call === "PUT /b/a")).toHaveLength(1);
});

test("a store's error is reported without the keys that it repeats", async () => {
  const secrets = [
    "AKIDCANARY0123456",
    "bucket/canary+secret-1",
    "bucket-canary-session",
    "pass-word-8",
  ];
  const [id, key, session, password] = secrets as [string, string, string, string];
  const server = http.createServer((request, response) => {
    request.resume();
    response
      .writeHead(403)
      .end(`${"x".repeat(290)}${key} ${encodeURIComponent(key)} ${id} ${session}`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const place = (await openSharedPlace("s3://b", {
    AWS_ACCESS_KEY_ID: id,
    AWS_SECRET_ACCESS_KEY: key,
    AWS_SESSION_TOKEN: session,
    AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
  }))!;
  const refused = await place.write("a", Buffer.from("a")).catch((error: unknown) => error);
  expect((refused as Error).message).toBe(
    `Cannot PUT http://127.0.0.1:${port}/b/a: 403 ${"x".repeat(290)}[redacted]`,
  );
  await openSharedPlace("s3://b", {
    ...keys,
    AWS_ENDPOINT_URL: `http://me:${password}@127.0.0.1:1`,
  });
  expect(new Redactor().text(secrets.join(" "))).toBe(
    "[redacted] [redacted] [redacted] [redacted]",
  );
  server.closeAllConnections();
  server.close();
});
