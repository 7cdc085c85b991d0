import { cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { verifyRun } from "../../src/verify/verify-run.ts";
import { dialects } from "../../src/gateway/dialects/registry.ts";
import { readGatewayConfig } from "../../src/composition/config/gateway-config.ts";
import { createGatewayRun, type GatewayRun } from "../../src/composition/gateway-run.ts";
import { startSglangTestServer } from "../../src/testing/protocol-servers/sglang/sglang-test-server.ts";
import { modelDir } from "./storefront-session.fixture.ts";

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-gateway-"));
});

afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

let nowMs = 1_800_000_000_000;

async function start(more: Readonly<Record<string, unknown>> = {}): Promise<GatewayRun> {
  const config = readGatewayConfig({
    engine: "reference",
    model: modelDir,
    out: dir,
    threads: 1,
    temperature: 1,
    ...more,
  });
  const env = { BOSS: "the-admin-token" };
  return await createGatewayRun(config, { env, now: () => (nowMs += 1000) });
}

type GatewayRunSummary = ReturnType<GatewayRun["progress"]>;

type ChatMessage = { readonly role: string; readonly content: string };

const hello: ChatMessage = { role: "user", content: "Hello." };

/** Has a session sample a turn; returns the turn as a client would send it back. */
async function ask(
  { gateway }: GatewayRun,
  sessionId: string,
  messages: readonly ChatMessage[],
): Promise<ChatMessage> {
  const session = gateway.store.byId(sessionId)!;
  const body = JSON.stringify({ messages, max_tokens: 4 });
  const feed = await gateway.ask(session, dialects.chat, {
    headers: new Headers(),
    body: Buffer.from(body),
  });
  const reply = JSON.parse(await new Response(feed.open()).text()) as {
    readonly choices: readonly { readonly message: ChatMessage }[];
  };
  return reply.choices[0]!.message;
}

/** A session that sampled a turn, and its key. */
async function openAndAsk(run: GatewayRun, taskId: string) {
  const opened = await run.gateway.openSession({ taskId });
  return { ...opened, said: await ask(run, opened.sessionId, [hello]) };
}

async function finish({ gateway }: GatewayRun, sessionId: string, reward: number): Promise<void> {
  await gateway.finish(gateway.store.byId(sessionId)!, { reward: { reward } });
}

async function read(name: string): Promise<string> {
  return await readFile(path.join(dir, name), "utf8");
}

async function edit(name: string, change: (text: string) => string): Promise<void> {
  await writeFile(path.join(dir, name), change(await read(name)));
}

function file(name: string): string {
  return path.join(dir, name);
}

/** Damages the line of the journal that contains all of these texts. */
function damage(...marks: readonly string[]): (text: string) => string {
  return (text) => {
    const lines = text.split("\n");
    const at = lines.findIndex((line) => marks.every((mark) => line.includes(mark)));
    expect(at).not.toBe(-1);
    return lines.with(at, lines[at]!.slice(0, 60)).join("\n");
  };
}

describe("a gateway's folder with open sessions", () => {
  const colder = { temperature: 0.5 };

  test("is not taken by a gateway of other settings, though no session is finished", async () => {
    {
      await using run = await start();
      await openAndAsk(run, "t");
    }
    const before = await read("run.json");
    await expect(start(colder)).rejects.toThrow(
      `Cannot resume ${dir}: temperature was 1 and is 0.5; start with the same settings or choose another --out`,
    );
    expect(await read("run.json")).toBe(before);
    await using run = await start();
    expect(run.gateway.store.openCount).toBe(1);
  });

  test("is refused with other settings even if run.json is lost, and continues with the same ones", async () => {
    {
      await using run = await start();
      await openAndAsk(run, "t");
    }
    const { runId } = JSON.parse(await read("run.json")) as { runId: string };
    await rm(file("run.json"));
    await expect(start(colder)).rejects.toThrow("temperature was 1 and is 0.5");
    await using run = await start();
    expect([run.folder.manifest.runId, run.gateway.store.openCount]).toEqual([runId, 1]);
  });

  test("has the sampling rate of its last start, with the turns of open sessions", async () => {
    const summaryOf = async (run: GatewayRun) => {
      await run.end();
      return JSON.parse(await read("summary.json")) as GatewayRunSummary;
    };
    {
      await using run = await start();
      const { sessionId } = await openAndAsk(run, "finished");
      await openAndAsk(run, "open");
      await finish(run, sessionId, 1);
      const { spentMs, elapsedMs, sampledTokensPerSecond } = await summaryOf(run);
      const lines = (await read("gateway.jsonl")).trim().split("\n");
      const turns = lines.flatMap((line) => {
        const { record } = JSON.parse(line) as { record?: { engineMs: number } };
        return record === undefined ? [] : [record.engineMs];
      });
      expect(turns).toHaveLength(2);
      expect(spentMs).toEqual({ engine: turns[0]! + turns[1]!, user: 0, environment: 0 });
      expect(sampledTokensPerSecond).toBe(8000 / elapsedMs);
    }
    await using run = await start();
    expect(await summaryOf(run)).toMatchObject({
      sampledTokenCount: 4,
      spentMs: { engine: 0, user: 0, environment: 0 },
      sampledTokensPerSecond: 0,
    });
  });

  test("continues the counts of earlier starts, also those of finished sessions", async () => {
    const send = async ({ gateway }: GatewayRun, sessionId: string, body: object, key?: string) => {
      const feed = await gateway.ask(gateway.store.byId(sessionId)!, dialects.chat, {
        headers: new Headers(key === undefined ? {} : { "idempotency-key": key }),
        body: Buffer.from(JSON.stringify({ max_tokens: 4, ...body })),
      });
      await new Response(feed.open()).text();
    };
    const messages = [hello];
    const counts = {
      turnCount: 3,
      continuedCount: 0,
      roots: { first: 2, "repeated-prompt": 1 },
      notes: {},
      replayedCount: 1,
      undeliveredCount: 0,
      unenforced: { logit_bias: 2 },
      leftOutCallCount: 0,
      rejectedTurns: {},
      refused: { "Cannot read messages: expected a list, not a string": 1 },
      ignoredFields: { seed: 1, user: 1 },
    };
    {
      await using run = await start();
      const { sessionId } = await run.gateway.openSession({ taskId: "finished" });
      await send(run, sessionId, { messages, logit_bias: { 5: 1 }, seed: 3 });
      await finish(run, sessionId, 1);
      const { sessionId: openId } = await run.gateway.openSession({ taskId: "open" });
      await send(run, openId, { messages, logit_bias: { 5: 1 } }, "k");
      await send(run, openId, { messages, logit_bias: { 5: 1 } }, "k");
      await expect(send(run, openId, { messages: "none" })).rejects.toThrow("expected a list");
      await send(run, openId, { messages, user: "me" });
      expect(run.gateway.counts).toEqual({ ...counts, openSessionCount: 1, isPaused: false });
    }
    {
      await using run = await start();
      const { sessionId } = await run.gateway.openSession({ taskId: "later" });
      await send(run, sessionId, { messages });
    }
    await using run = await start();
    await run.end();
    const summary = JSON.parse(await read("summary.json")) as { readonly gateway: object };
    expect(summary.gateway).toEqual({
      ...counts,
      turnCount: 4,
      roots: { first: 3, "repeated-prompt": 1 },
      openSessionCount: 2,
      isPaused: false,
    });
  });

  test("keeps the evidence against turns that nothing continued", async () => {
    let sessionId: string;
    {
      await using run = await start();
      ({ sessionId } = await openAndAsk(run, "t"));
    }
    {
      await using run = await start();
      const said = await ask(run, sessionId, [hello]);
      await ask(run, sessionId, [hello, said, { role: "user", content: "Go on." }]);
    }
    {
      await using run = await start();
      const session = run.gateway.store.byId(sessionId)!;
      expect(session.lineage.map(({ role, rejected }) => [role, rejected])).toEqual([
        ["retry", "resumed-sibling"],
        ["main", undefined],
        ["main", undefined],
      ]);
      const [row, ...others] = run.gateway.samples(session);
      expect([row!.turns.length, others]).toEqual([2, []]);
      await finish(run, sessionId, 1);
    }
    await using run = await start();
    await run.end();
    const summary = JSON.parse(await read("summary.json")) as { readonly gateway: object };
    expect(summary.gateway).toMatchObject({ rejectedTurns: { "resumed-sibling": 1 } });
    const { tree } = JSON.parse(await read("episodes.jsonl")) as { readonly tree: object[] };
    expect(tree[0]).toMatchObject({ role: "retry", rejected: "resumed-sibling" });
    const { violations } = await verifyRun(dir);
    expect(violations).toEqual([]);
  });

  test("keeps its evaluation until the next session has ended", async () => {
    const names = ["evaluation.json", "report.md", "results.tau-bench.json"];
    const left = async () => (await readdir(dir)).filter((name) => names.includes(name)).toSorted();
    {
      await using run = await start();
      const { sessionId } = await openAndAsk(run, "t");
      await finish(run, sessionId, 1);
    }
    const evaluated = JSON.stringify({ format: 1, episodes: { finished: 1 } });
    for (const name of names) await writeFile(file(name), evaluated);
    {
      await using run = await start();
      await run.end();
    }
    expect(await left()).toEqual(names);
    await using run = await start();
    const { sessionId } = await openAndAsk(run, "t");
    expect(await left()).toEqual(names);
    await finish(run, sessionId, 1);
    expect(await left()).toEqual([]);
  });

  test("may be reused with any settings if no session was opened", async () => {
    {
      await using _run = await start();
    }
    await using run = await start(colder);
    expect(run.folder.manifest.configuration).toMatchObject(colder);
  });

  test("continues its own sessions, and none of another run", async () => {
    {
      await using run = await start();
      await openAndAsk(run, "own");
      await openAndAsk(run, "foreign");
    }
    const { runId } = JSON.parse(await read("run.json")) as { runId: string };
    await edit("gateway.jsonl", (text) => {
      const place = text.lastIndexOf(`"run":"${runId}"`);
      return text.slice(0, place) + text.slice(place).replace(runId, "another");
    });
    await using run = await start();
    expect([...run.gateway.store.open].map(({ identity }) => identity.taskId)).toEqual(["own"]);
    expect(run.notes).toEqual([
      `${file("gateway.jsonl")} has sessions of another run (1): they are not continued`,
    ]);
  });
});

describe("a gateway's folder whose sessions were played and scored with other settings", () => {
  const changed = (): string => `Cannot resume ${dir}: the identity of its episodes has changed: `;
  /** Beside the run's folder, which lies below. */
  let scratch: string;

  beforeEach(() => {
    scratch = dir;
    dir = path.join(scratch, "run");
  });

  afterEach(() => {
    dir = scratch;
  });

  async function play(more: Readonly<Record<string, unknown>>): Promise<void> {
    await using run = await start(more);
    await openAndAsk(run, "t");
  }

  test("is refused to another scorer, to the same file with another content, and to none", async () => {
    const [scorer, other] = [path.join(scratch, "a.mjs"), path.join(scratch, "b.mjs")];
    await writeFile(scorer, "export const score = () => ({ reward: 1 });");
    await writeFile(other, "export const score = () => ({ reward: -5 });");
    await play({ scorer });
    await expect(start({ scorer: other })).rejects.toThrow(`${changed()}scorer was "`);
    await expect(start()).rejects.toThrow(/scorer was "\w{64}" and is "none"/);
    const copy = path.join(scratch, "copy.mjs");
    await cp(scorer, copy);
    await play({ scorer: copy });
    await writeFile(copy, "export const score = () => ({ reward: 100 });");
    await expect(start({ scorer: copy })).rejects.toThrow(/scorer was "\w{64}" and is "\w{64}"/);
  });

  test("names a missing scorer before it looks at the folder", async () => {
    await play({});
    const scorer = path.join(scratch, "none.mjs");
    await expect(start({ scorer })).rejects.toThrow(`Cannot load the scorer ${scorer}: `);
  });

  test("is refused to other weights", async () => {
    const model = path.join(scratch, "model");
    await cp(modelDir, model, { recursive: true });
    await play({ model });
    const file = path.join(model, "model.safetensors");
    const weights = await readFile(file);
    weights.subarray(-4096).fill(0);
    await writeFile(file, weights);
    await expect(start({ model })).rejects.toThrow(`${changed()}weights was "`);
  });

  test("is refused to another tokenizer below the same name, and to other template variables", async () => {
    const model = path.join(scratch, "models--acme--tiny");
    const snapshots = ["1", "2"].map((digit) => digit.repeat(40));
    for (const commit of snapshots) {
      await cp(modelDir, path.join(model, "snapshots", commit), { recursive: true });
    }
    const tokenizer = path.join(model, "snapshots", snapshots[1]!, "tokenizer.json");
    await writeFile(tokenizer, `${await readFile(tokenizer, "utf8")}\n`);
    await mkdir(path.join(model, "refs"));
    const point = async (commit: string) => await writeFile(path.join(model, "refs/main"), commit);
    await using server = await startSglangTestServer();
    const same = { engine: "sglang", url: [server.url], threads: undefined, model };
    await point(snapshots[0]!);
    {
      await using run = await start(same);
      await run.gateway.openSession({});
    }
    await point(snapshots[1]!);
    await expect(start(same)).rejects.toThrow(
      /has changed: tokenizer was "\w{64}" and is "\w{64}";/,
    );
    await point(snapshots[0]!);
    const config = path.join(model, "snapshots", snapshots[0]!, "tokenizer_config.json");
    const stored = JSON.parse(await readFile(config, "utf8")) as object;
    await writeFile(config, JSON.stringify({ ...stored, unk_token: "<|other|>" }));
    await expect(start(same)).rejects.toThrow(`${changed()}templateVariables was "`);
  });

  test("is refused to a server with another context, unless it is given the former one", async () => {
    const serve = async (contextLength: number) => await startSglangTestServer({ contextLength });
    await using first = await serve(4096);
    await using small = await serve(720);
    await using large = await serve(8192);
    const at = (url: string) => ({ engine: "sglang", url: [url], threads: undefined });
    {
      await using run = await start(at(first.url));
      await run.gateway.openSession({});
    }
    await expect(start(at(small.url))).rejects.toThrow(
      `${changed()}max-context was "4096" and is "720"; restore what was there or choose`,
    );
    await expect(start(at(large.url))).rejects.toThrow(
      `${changed()}max-context was "4096" and is "8192"; ` +
        "restore what was there, give --max-context 4096 or choose another --out",
    );
    await using run = await start({ ...at(large.url), "max-context": 4096 });
    expect(run.gateway.store.openCount).toBe(1);
  });
});

describe("a gateway's folder in which a finished session's row is damaged", () => {
  /** Two finished sessions, of which the first has lost a row. */
  async function damageFirst(): Promise<readonly string[]> {
    const sessionIds: string[] = [];
    {
      await using run = await start();
      for (const [reward, taskId] of ["a", "b"].entries()) {
        const { sessionId } = await openAndAsk(run, taskId);
        sessionIds.push(sessionId);
        await finish(run, sessionId, reward);
      }
    }
    await edit("samples.jsonl", (text) => text.replace('"reward":0', '"reward":9'));
    return sessionIds;
  }

  const lacking =
    "samples.jsonl lacks rows of finished episodes, or has damaged ones: these episodes are taken out (1)";

  test("writes it again to the byte, and keeps its findings", async () => {
    await damageFirst();
    const before = await read("episodes.jsonl");
    const damaged = await read("samples.jsonl");
    {
      await using run = await start();
      expect(run.notes).toEqual([
        file(lacking),
        `what is left of these is set aside in ${file("episodes.set-aside.jsonl")}, ` +
          file("samples.set-aside.jsonl"),
        `finished sessions without an episode are written again from ${file("gateway.jsonl")}: a#0`,
      ]);
      expect(run.progress()).toMatchObject({ finished: 2, rewardMean: 0.5 });
      expect(run.gateway.store.openCount).toBe(0);
      await run.end();
    }
    const [first, second] = before.trim().split("\n");
    expect(await read("episodes.jsonl")).toBe(`${second}\n${first}\n`);
    expect(await read("episodes.set-aside.jsonl")).toBe(`${first}\n`);
    expect(await read("samples.set-aside.jsonl")).toBe(`${damaged.split("\n")[0]}\n`);
    const verified = await verifyRun(dir);
    expect(verified).toMatchObject({ samples: 2, episodes: 2, isFinished: true, violations: [] });
    await using again = await start();
    expect(again.notes).toEqual([]);
  });

  test("writes a failed one again with its failure, of which the journal has no secret either", async () => {
    const settings = { "admin-token-env": "BOSS" };
    {
      await using run = await start(settings);
      const { sessionId } = await openAndAsk(run, "a");
      const message = "The agent was told the-admin-token";
      const failure = { party: "agent", code: "agent/reported", message } as const;
      await run.gateway.finish(run.gateway.store.byId(sessionId)!, { failure });
    }
    const before = await read("episodes.jsonl");
    expect(before).toContain('"message":"The agent was told ');
    expect(await read("gateway.jsonl")).not.toContain("the-admin-token");
    await writeFile(file("episodes.jsonl"), "");
    await using run = await start(settings);
    expect(await read("episodes.jsonl")).toBe(before);
    expect(run.progress().failures).toEqual({ "agent/reported": 1 });
  });

  test("has no secret of an opened session or a reward in its journal", async () => {
    const note = "The boss is the-admin-token";
    await using run = await start({ "admin-token-env": "BOSS" });
    const { gateway } = run;
    const opened = await gateway.openSession({ taskId: "a", metadata: { note } });
    const session = gateway.store.byId(opened.sessionId)!;
    await gateway.reward(session, { reward: 0.5, details: { note } });
    await gateway.finish(session, { reward: { reward: 1, details: { note } } });
    const lines = (await read("gateway.jsonl")).trim().split("\n");
    const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const hidden = { note: "The boss is [redacted]" };
    expect(entries).toMatchObject([
      { type: "opened", identity: { metadata: hidden } },
      { type: "reward", reward: { reward: 0.5, details: hidden } },
      { type: "reward", reward: { reward: 1, details: hidden } },
      { type: "finished", end: { reward: { reward: 1, details: hidden } } },
    ]);
  });

  test("keeps the rest of a session whose journal lacks turns, and reuses none of their numbers", async () => {
    const [first] = await damageFirst();
    await edit("gateway.jsonl", damage('"type":"turn"', first!));
    await using run = await start();
    expect(run.notes.slice(2)).toEqual([
      `${file("gateway.jsonl")} has damaged lines (1): they are skipped, and so are lines that depend on ` +
        "them (1)",
      `finished sessions without an episode cannot be written, because ${file("gateway.jsonl")} lacks some of their turns: a#0`,
    ]);
    expect(await read("samples.set-aside.jsonl")).not.toBe("");
    const { sessionId } = await run.gateway.openSession({ taskId: "a" });
    expect(run.gateway.store.byId(sessionId)?.identity.sampleIndex).toBe(1);
  });
});

/** The violation that a damaged line of the journal is. */
function tornLine(line: number) {
  const detail = "the line is not an entry of a session (a torn line?)";
  return { file: "gateway.jsonl", line, rule: "sessions", detail };
}

describe("a gateway's journal with a damaged line", () => {
  test("starts even with damage in a finished session, and reuses none of its numbers", async () => {
    let firstId: string;
    {
      await using run = await start();
      const { sessionId } = await run.gateway.openSession();
      firstId = sessionId;
      await finish(run, sessionId, 1);
    }
    await edit("gateway.jsonl", damage('"type":"opened"', firstId));
    await using run = await start();
    expect(run.notes).toEqual([
      `${file("gateway.jsonl")} has damaged lines (1): they are skipped, and so are lines that depend on ` +
        "them (2)",
    ]);
    const { sessionId } = await run.gateway.openSession();
    const session = run.gateway.store.byId(sessionId);
    expect(session?.identity).toMatchObject({ taskId: "session-1", taskIndex: 1, sampleIndex: 0 });
    await finish(run, sessionId, 1);
    expect(await verifyRun(dir)).toMatchObject({
      episodes: 2,
      violations: [
        tornLine(1),
        { file: "gateway.jsonl", detail: "no line opens the session of session-0#0" },
      ],
    });
  });

  test("keeps the turns of an open session that do not build on it, and continues after them", async () => {
    let sessionId: string;
    let other: ChatMessage;
    const second: ChatMessage = { role: "user", content: "Another conversation." };
    const more: ChatMessage = { role: "user", content: "Go on." };
    {
      await using run = await start();
      const opened = await openAndAsk(run, "t");
      ({ sessionId } = opened);
      await ask(run, sessionId, [hello, opened.said, more]);
      other = await ask(run, sessionId, [second]);
    }
    await edit("gateway.jsonl", damage('"type":"turn"', '"index":0'));
    let said: ChatMessage;
    {
      await using run = await start();
      const { nodes } = run.gateway.store.byId(sessionId)!.tree;
      expect(nodes.map(({ cause }) => cause)).toEqual(["new-conversation"]);
      said = await ask(run, sessionId, [second, other, more]);
    }
    await using run = await start();
    const { nodes } = run.gateway.store.byId(sessionId)!.tree;
    expect(nodes.map(({ index, parent }) => [index, parent?.index])).toEqual([
      [0, undefined],
      [1, 0],
    ]);
    await ask(run, sessionId, [second, other, more, said, more]);
    expect(nodes.map(({ parent }) => parent?.index)).toEqual([undefined, 0, 1]);
    await finish(run, sessionId, 1);
    const violations = [tornLine(2)];
    expect(await verifyRun(dir)).toMatchObject({ samples: 1, episodes: 1, violations });
  });

  test("reuses no request id or seed, regardless of the skipped turns", async () => {
    const another: ChatMessage = { role: "user", content: "Another conversation." };
    let sessionId: string;
    {
      await using run = await start({ "sampling-seed": 3 });
      const opened = await openAndAsk(run, "t");
      ({ sessionId } = opened);
      await ask(run, sessionId, [another]);
      await ask(run, sessionId, [hello, opened.said, another]);
    }
    await edit("gateway.jsonl", damage('"type":"turn"', '"index":0'));
    await using run = await start({ "sampling-seed": 3 });
    await ask(run, sessionId, [hello]);
    const { nodes } = run.gateway.store.byId(sessionId)!.tree;
    const requests = nodes.map(({ record: { generation, sampling } }) => [
      generation.pieces.map(({ requestId }) => requestId),
      sampling.seed,
    ]);
    const seed = requests[0]![1] as number;
    expect(requests).toEqual([
      [[`${sessionId}:1;`], seed],
      [[`${sessionId}:3;`], seed + 2],
    ]);
  });

  test("continues concurrent turns, in either order of writing", async () => {
    let sessionId: string;
    {
      await using run = await start();
      ({ sessionId } = await openAndAsk(run, "t"));
      await ask(run, sessionId, [{ role: "user", content: "Another conversation." }]);
    }
    await edit("gateway.jsonl", (text) => {
      const lines = text.split("\n");
      const turns = lines.filter((line) => line.includes('"type":"turn"'));
      const others = lines.filter((line) => !turns.includes(line));
      return [others[0], ...turns.toReversed(), ...others.slice(1)].join("\n");
    });
    await using run = await start();
    expect(run.notes).toEqual([]);
    const { nodes } = run.gateway.store.byId(sessionId)!.tree;
    expect(nodes.map(({ cause }) => cause)).toEqual(["new-conversation", "first"]);
    await finish(run, sessionId, 1);
    expect(await verifyRun(dir)).toMatchObject({ samples: 2, episodes: 1, violations: [] });
  });
});
