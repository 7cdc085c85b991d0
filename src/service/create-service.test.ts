import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createScriptedPolicy, startSglangTestServer } from "../testing/index.ts";
import { createService } from "./create-service.ts";
import { readServiceConfig } from "./service-settings.ts";

/** A small one: its tokenizer is loaded in no time. */
const model = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-create-service-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

test("each key of a service is registered as a secret", async () => {
  await using engine = await startSglangTestServer({ policy: createScriptedPolicy([]) });
  const env = {
    TEST_ENGINE_KEY: "sk-engine-0123456789",
    TEST_TOKEN: "token-0123456789",
    TEST_LIGHTNING_KEY: "agl-0123456789",
  };
  const config = readServiceConfig({
    env: "storefront",
    user: "scripted",
    model,
    parser: "qwen25",
    out: dir,
    url: [engine.url],
    "api-key-env": "TEST_ENGINE_KEY",
    "token-env": "TEST_TOKEN",
    "agent-lightning": "http://reader:s3cret-word@127.0.0.1:1",
    "agent-lightning-key-env": "TEST_LIGHTNING_KEY",
  });
  await using created = await createService(config, { env });
  const { redactor } = created;
  for (const key of [...Object.values(env), "s3cret-word"]) {
    expect(redactor.text(`no access with ${key}`)).toBe("no access with [redacted]");
  }
});
