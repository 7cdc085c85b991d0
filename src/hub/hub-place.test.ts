import { homedir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { readHubPlace } from "./hub-place.ts";

describe("readHubPlace()", () => {
  test.each([
    [{}, false],
    [{ HF_HUB_OFFLINE: "1" }, true],
    [{ HF_HUB_OFFLINE: "Yes" }, true],
    [{ HF_HUB_OFFLINE: "0" }, false],
    [{ TRANSFORMERS_OFFLINE: "1" }, true],
    [{ HF_HUB_OFFLINE: "", TRANSFORMERS_OFFLINE: "true" }, true],
    [{ HF_HUB_OFFLINE: "0", TRANSFORMERS_OFFLINE: "1" }, false],
  ])("reads %j as the hub's own library does", (env, isOffline) => {
    expect(readHubPlace(env).isOffline).toBe(isOffline);
  });

  test.each([
    [{ HF_HUB_CACHE: "~/models" }, path.join(homedir(), "models")],
    [{ HF_HOME: "~/hf" }, path.join(homedir(), "hf/hub")],
    [{ HF_HUB_CACHE: "/a/~b" }, "/a/~b"],
  ])("finds the cache that %j names", (env, dir) => {
    expect(readHubPlace(env).cacheDir).toBe(dir);
  });
});
