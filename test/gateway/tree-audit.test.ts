import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { verifyRun } from "../../src/verify/verify-run.ts";
import { checkTree, compareTree } from "../../src/episode/check/check-tree.ts";
import type { Episode } from "../../src/episode/episode.ts";
import { createGateway, inProcessUrl } from "../../src/gateway/create-gateway.ts";
import { episodeSamples } from "../../src/run/folder/episode-samples.ts";
import { RunFolder } from "../../src/run/folder/run-folder.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import type { RawRow } from "../../src/trajectory/violation.ts";
import { createExpertEngine, storefrontRenderer } from "./storefront-session.fixture.ts";

// A mutated line can have any shape.
// oxlint-disable-next-line typescript/no-explicit-any
type Json = Record<string, any>;

interface Played {
  readonly episode: Episode;
  readonly samples: readonly Sample[];
}

let played: Played;

beforeAll(async () => {
  played = await playBranches();
});

/** A session with a shared turn, a second conversation, and a model that is not trained. */
async function playBranches(): Promise<Played> {
  const renderer = await storefrontRenderer();
  let count = 0;
  const engine = createExpertEngine(renderer, () => `answer ${count++}`);
  await using gateway = await createGateway({ engine, renderer, policyModels: ["policy"] });
  const { token, sessionId } = await gateway.openSession({ taskId: "branches" });
  const say = async (messages: readonly object[], model = "policy") => {
    const response = await gateway.fetch(`${inProcessUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "session-id": "main" },
      body: JSON.stringify({ model, messages }),
    });
    const { choices } = (await response.json()) as Json;
    return choices[0].message as object;
  };
  const user = (content: string) => ({ role: "user", content });
  const first = await say([user("Hello")]);
  const second = await say([user("Hello"), first, user("left")]);
  await say([user("Hello"), first, user("right")]);
  await say([user("A title, please")], "small");
  await say([user("Hello"), first, user("left"), second, user("on")]);
  expect(gateway.counts).toMatchObject({ turnCount: 5, continuedCount: 3 });
  await gateway.reward(sessionId, { reward: 1 });
  expect(gateway.samples(sessionId)).toHaveLength(2);
  const episode = await gateway.finish(sessionId);
  expect(() => gateway.samples(sessionId)).toThrow(`Cannot find session ${sessionId}`);
  return { episode, samples: episodeSamples(episode) };
}

function copies(): { readonly episode: Json; readonly samples: Json[] } {
  const { segments: _ids, ...story } = played.episode;
  return JSON.parse(JSON.stringify({ episode: story, samples: played.samples })) as never;
}

function findings({ episode, samples }: { episode: Json; samples: Json[] }): string[] {
  const inTree = checkTree(episode["tree"], episode["turns"] as unknown[]);
  const inRows = samples.flatMap((row) => compareTree(row as RawRow, episode as never));
  return [...inTree, ...inRows].map(({ rule, detail }) => `${rule}: ${detail}`);
}

describe("the tree of a session", () => {
  test("is kept with the episode: causes of roots, what continues what, and which row trains it", () => {
    const tree = played.episode.tree!;
    expect(tree.map(({ parent, cause, turnIndex }) => ({ parent, cause, turnIndex }))).toEqual([
      { parent: undefined, cause: "first", turnIndex: 0 },
      { parent: 0, cause: undefined, turnIndex: 1 },
      { parent: 0, cause: undefined, turnIndex: 3 },
      { parent: undefined, cause: "new-conversation", turnIndex: undefined },
      { parent: 1, cause: undefined, turnIndex: 2 },
    ]);
    expect(tree[0]).toMatchObject({ model: "policy", labels: { "session-id": "main" } });
    expect(played.samples.map(({ metadata }) => metadata["branch"])).toEqual([
      { cause: "first", node: 0 },
      { cause: "first", node: 2, afterTurn: 0 },
    ]);
    expect(findings(copies())).toEqual([]);
  });

  test.each<[string, (files: { episode: Json; samples: Json[] }) => void, string]>([
    ["a root's cause", ({ episode }) => delete episode["tree"][0].cause, "has no cause"],
    [
      "a cause beside a parent",
      ({ episode }) => (episode["tree"][1].cause = "first"),
      'tree[1] continues a turn, and has the cause "first"',
    ],
    [
      "a parent that comes later",
      ({ episode }) => (episode["tree"][1].parent = 4),
      "tree[1] continues tree[4], no earlier turn",
    ],
    [
      "another parent",
      ({ episode }) => (episode["tree"][4].parent = 2),
      "trains turn 1, which its last turn does not continue",
    ],
    [
      "a turn that lies within its parent",
      ({ episode }) => (episode["tree"][1].promptTokenCount = 3),
      "tree[1] was sampled after 3 ids",
    ],
    [
      "a turn that two nodes are",
      ({ episode }) => (episode["tree"][2].turnIndex = 1),
      "tree[2] is turn 1, as tree[1] is",
    ],
    [
      "a turn that no node is",
      ({ episode }) => delete episode["tree"][2].turnIndex,
      "turn 3 is not in the tree",
    ],
    ["a node", ({ episode }) => episode["tree"].pop(), "turn 2 is not in the tree"],
    [
      "the number of a node's ids",
      ({ episode }) => (episode["tree"][0].sampledTokenCount += 1),
      "tree[0] has sampledTokenCount",
    ],
    [
      "the hash of a node",
      ({ episode }) => (episode["tree"][1].outputHash = "0".repeat(16)),
      "is not there with the ids that were sampled",
    ],
    [
      "an id of a turn that is context",
      ({ samples }) => (samples[1]!["tokenIds"][startOf(0)] += 1),
      "is not there with the ids that were sampled",
    ],
    [
      "a turn that is trained in a second row",
      ({ samples }) => samples[1]!["lossMask"].fill(1, startOf(0), startOf(0) + 1),
      "is context here, and the mask differs",
    ],
    [
      "a turn that is trained in no row",
      ({ samples }) => (samples[0]!["lossMask"][startOf(0)] = 0),
      "is trained here, and the mask differs",
    ],
    [
      "a role",
      ({ episode }) => (episode["tree"][1].role = "helper"),
      'tree[1] has the role "helper"',
    ],
    [
      "a link to a later turn",
      ({ episode }) => (episode["tree"][1].from = { turn: 1, edge: "compaction" }),
      "tree[1] comes from tree[1], no earlier turn",
    ],
    [
      "the kind of a link",
      ({ episode }) => (episode["tree"][1].from = { turn: 0, edge: "copy" }),
      'tree[1] has a link of the kind "copy"',
    ],
    [
      "the evidence against a turn",
      ({ episode }) => (episode["tree"][3].rejected = "boring"),
      'tree[3] is rejected for "boring"',
    ],
    [
      "a rejected turn that a row trains",
      ({ episode }) => (episode["tree"][4].rejected = "client"),
      "tree[4] is rejected, and a row trains it",
    ],
    [
      "a rejected turn that another continues",
      ({ episode }) => (episode["tree"][1].rejected = "client"),
      "tree[4] continues tree[1], which is rejected",
    ],
    ["a shape", ({ episode }) => (episode["tree"][3] = { parent: -1 }), "is not a turn of a tree"],
    ["the list", ({ episode }) => (episode["tree"] = {}), "tree is not a list"],
  ])("%s that is changed is found", (_, mutate, expected) => {
    const files = copies();
    mutate(files);
    if (Array.isArray(files.episode["tree"])) {
      expect(findings(files).join("\n")).toContain(expected);
    } else expect(checkTree(files.episode["tree"], [])[0]!.detail).toBe(expected);
  });
});

function startOf(node: number): number {
  return played.episode.tree![node]!.promptTokenCount;
}

describe("verify", () => {
  let dir: string;

  beforeEach(async () => {
    dir = await mkdtemp(path.join(tmpdir(), "turnwright-tree-"));
  });

  afterEach(async () => {
    await rm(dir, { recursive: true });
  });

  test("holds a run's rows against the trees of its episodes", async () => {
    const plan = { environment: "gateway", split: "live", isOpen: true };
    const manifest = {
      format: 1 as const,
      turnwright: "0",
      configuration: {},
      identity: {},
      found: { plan, vocabularySize: 100_000 },
    };
    {
      await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
      await folder.writeEvent({ type: "run-started", atMs: 0, manifest });
      await folder.writeEpisode(played.episode);
    }
    const { taskId, sampleIndex } = played.episode;
    const opened = { type: "opened", identity: { sessionId: "s0", taskId, sampleIndex } };
    await writeFile(path.join(dir, "gateway.jsonl"), `${JSON.stringify(opened)}\n`);
    expect((await verifyRun(dir)).violations).toEqual([]);
    const file = path.join(dir, "episodes.jsonl");
    const line = await readFile(file, "utf8");
    await writeFile(file, line.replace('"cause":"first"', '"cause":""'));
    const { violations } = await verifyRun(dir);
    expect(violations.map(({ file: name, rule }) => `${name} ${rule}`)).toContain(
      "episodes.jsonl tree",
    );
  });
});
