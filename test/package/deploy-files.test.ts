import { readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { rolloutSettings } from "../../src/cli/commands/rollout.ts";
import { readQueueConfig, queueSettings } from "../../src/queue/queue-settings.ts";
import { readWorkerConfig, workerSettings } from "../../src/queue/worker/worker-settings.ts";
import { readRunConfig, runSettings } from "../../src/composition/config/run-config.ts";
import type { Setting } from "../../src/composition/config/setting.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Returns the flags after each `- command` of a file, as settings. */
async function callsIn(file: string, command: string, table: readonly Setting[]) {
  const lines = (await readFile(path.join(root, file), "utf8")).split("\n");
  const starts = lines.flatMap((line, index) => (line.trim() === `- ${command}` ? [index] : []));
  return starts.map((start) => {
    const words: string[] = [];
    for (let index = start + 1; /^\s+- --/.test(lines[index] ?? ""); index++) {
      words.push(lines[index]!.trim().slice(2));
    }
    const settings = words.map((word): [string, unknown] => {
      const [, name = "", value = ""] = /^--([a-z-]+)=(.+)$/.exec(word) ?? [];
      const type = table.find((setting) => setting.name === name)?.kind.type;
      expect(type, `${command} takes ${word}`).toBeDefined();
      return [name, type === "number" ? Number(value) : type === "list" ? [value] : value];
    });
    return Object.fromEntries(settings);
  });
}

function pick(table: readonly Setting[], settings: object): Record<string, unknown> {
  const names = new Set(table.map(({ name }) => name));
  return Object.fromEntries(Object.entries(settings).filter(([name]) => names.has(name)));
}

describe.each(["deploy/compose.yaml", "deploy/kubernetes.yaml"])("%s", (file) => {
  test("starts workers with the run's settings, and only with existing flags", async () => {
    const [worker] = await callsIn(file, "worker", workerSettings);
    const [run] = await callsIn(file, "rollout", rolloutSettings);
    const played = readWorkerConfig(worker!);
    const handedOut = readRunConfig(pick(runSettings, run!));
    expect(readQueueConfig(pick(queueSettings, run!))).toEqual(played.queue);
    for (const part of ["environment", "engine", "renderer", "agent", "user", "limits"] as const) {
      expect(played.run[part]).toEqual(handedOut[part]);
    }
    expect(played.queue).toMatchObject({
      url: "redis://store:6379",
      passwordEnv: "STORE_PASSWORD",
    });
  });

  test("gives workers more time to end than they take to drain", async () => {
    const text = await readFile(path.join(root, file), "utf8");
    const [worker] = await callsIn(file, "worker", workerSettings);
    const [, grace] = /(?:stop_grace_period: |terminationGracePeriodSeconds: )(\d+)/.exec(text)!;
    expect(Number(grace) * 1_000).toBeGreaterThan(readWorkerConfig(worker!).drainMs + 5_000);
  });

  test("has no password in it", async () => {
    const text = await readFile(path.join(root, file), "utf8");
    expect(text).not.toMatch(/requirepass [^%]/);
    expect(text).not.toMatch(/redis:\/\/[^/\s]*@/);
  });
});

test.each(["compose.yaml", "deploy/compose.yaml"])("%s writes to volumes alone", async (file) => {
  const text = await readFile(path.join(root, file), "utf8");
  // Docker creates a missing folder of the host as root's, and the image's user is not root.
  const folders = [...text.matchAll(/^ +- (\.\S*):\/\S+$/gm)].map(([line]) => line.trim());
  expect(folders.filter((line) => !line.endsWith(":ro"))).toEqual([]);
});
