import { expect, test } from "vitest";
import { startLlamaCppTestServer } from "../llama-cpp/llama-cpp-test-server.ts";
import { startSglangTestServer } from "../sglang/sglang-test-server.ts";
import { startVllmTestServer } from "../vllm/vllm-test-server.ts";

test.each([
  [startSglangTestServer, "SGLang", "0.5.23, 0.5.15"],
  [startVllmTestServer, "vLLM", "0.32, 0.24"],
  [startLlamaCppTestServer, "llama.cpp", "2026-10, 2026-08"],
] as const)(
  "a release that %o cannot play is refused, and those that it can are named",
  async (start, server, names) => {
    const sorted = names.split(", ").toSorted().join(", ");
    const options = { release: "toString" } as unknown as Parameters<typeof start>[0];
    await expect(start(options as never)).rejects.toThrow(
      `Cannot play ${server} toString: expected a release of ${sorted}`,
    );
  },
);
