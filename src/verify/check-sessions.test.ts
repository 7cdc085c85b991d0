import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { storedFiles } from "../run/gzip/stored-files.ts";
import { checkSessions } from "./check-sessions.ts";

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-sessions-"));
});

afterEach(async () => {
  await rm(dir, { recursive: true });
});

const gateway = { found: { plan: { environment: "gateway", isOpen: true } } };
const journal = [
  { type: "opened", run: "r", identity: { sessionId: "s0", taskId: "a", sampleIndex: 0 } },
  { type: "turn", sessionId: "s0", index: 0 },
  { type: "delivered", sessionId: "s0", index: 0 },
  { type: "turn", sessionId: "s0", index: 1 },
  { type: "reward", sessionId: "s0", reward: { reward: 1 } },
  { type: "counted", run: "r", counts: {} },
  { type: "finished", sessionId: "s0", turnCount: 2, end: { atMs: 0 } },
].map((entry) => JSON.stringify(entry));

async function findingsOf(
  lines: readonly string[] | undefined,
  { manifest = gateway, ids = ["a#0"] }: { manifest?: object; ids?: readonly string[] } = {},
): Promise<readonly string[]> {
  if (lines !== undefined) {
    await writeFile(path.join(dir, "gateway.jsonl"), lines.map((line) => `${line}\n`).join(""));
  }
  const episodes = new Map(ids.map((id) => [id, {}]));
  const findings = await checkSessions({ files: storedFiles, dir }, episodes, { ...manifest });
  return findings.map(({ file, line = "", detail }) => `${file}:${line} ${detail}`);
}

const torn = "the line is not an entry of a session (a torn line?)";

describe("checkSessions()", () => {
  test("finds nothing in a complete journal, or in that of a killed gateway", async () => {
    expect(await findingsOf(journal)).toEqual([]);
    expect(await findingsOf(journal.slice(0, -1))).toEqual([]);
    expect(await findingsOf(journal.slice(0, 2), { ids: [] })).toEqual([]);
  });

  test("finds a missing file of a gateway's run", async () => {
    expect(await findingsOf(undefined)).toEqual([
      "gateway.jsonl: the file is missing, which has the turns of all sessions",
    ]);
    expect(await findingsOf(undefined, { ids: [] })).toEqual([]);
    expect(await findingsOf(undefined, { manifest: { found: { plan: {} } } })).toEqual([]);
  });

  test("finds damaged lines, and sessions and turns that are missing", async () => {
    expect(await findingsOf([])).toEqual(["gateway.jsonl: no line opens the session of a#0"]);
    expect(await findingsOf(journal.with(1, "garbage"))).toEqual([
      `gateway.jsonl:2 ${torn}`,
      "gateway.jsonl: the session of a#0 has 1 of 2 turns",
    ]);
    expect(await findingsOf(journal.toSpliced(3, 1))).toEqual([
      "gateway.jsonl: the session of a#0 has 1 of 2 turns",
    ]);
    expect(await findingsOf(journal, { ids: ["a#0", "a#1"] })).toEqual([
      "gateway.jsonl: no line opens the session of a#1",
    ]);
  });

  test.each(['{"type":"other"}', '{"type":"opened"}', '{"type":"finished","turnCount":-1}', "[]"])(
    "refuses the line %s",
    async (line) => {
      expect(await findingsOf([...journal, line])).toEqual([`gateway.jsonl:8 ${torn}`]);
    },
  );
});
