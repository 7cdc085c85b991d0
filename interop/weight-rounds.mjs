// New weights while episodes are played: by the service, with real servers. Each round returns its figures.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { createReferenceEngine } from "../dist/src/engine/reference/index.js";
import { createSglangEngine } from "../dist/src/engine/sglang/sglang-engine.js";
import { loadSglangWeights } from "../dist/src/engine/sglang/load-weights.js";
import { createVllmWeightLoader } from "../dist/src/engine/vllm/load-weights.js";
import { createVllmEngine } from "../dist/src/engine/vllm/vllm-engine.js";
import * as folders from "./weight-folders.mjs";

const cliFile = fileURLToPath(new URL("../dist/src/cli/main.js", import.meta.url));

/**
 * Tolerances of a token's logprob: the largest difference from the reference engine's, and the least
 * difference from the other weights' that at least one token must have.
 */
const LIMITS = { same: 1e-3, other: 0.1 };

/** Finished groups before other weights are announced. */
const BEFORE_COUNT = 4;

/** Ids that every round scores. No conversation has them. */
const probeIds = Array.from({ length: 300 }, (_, index) => (index * 37 + 11) % 2_900);

/** The folders, and the reference engine that computes their logprobs. */
export function prepare(dir) {
  const at = (name) => path.join(dir, "weights", name);
  const base = folders.writeUntied(at("base"));
  const step = (name, seed) => folders.writeStep(at(name), { from: base, seed });
  return {
    base,
    next: step("next", 1),
    later: step("later", 2),
    missing: at("missing"),
    halfTorn: folders.writeHalfTorn(at("half-torn"), base),
    refused: {
      torn: folders.writeTorn(at("torn"), base),
      "half torn": at("half-torn"),
      incomplete: folders.writeIncomplete(at("incomplete"), base),
      narrower: folders.writeNarrower(at("narrower"), base),
      stranger: folders.writeStranger(at("stranger"), base),
    },
  };
}

/** Starts a service in front of the server. */
export async function startService({ server, url, dir, weights }) {
  const args = [
    "serve",
    "--env",
    "storefront",
    "--user",
    "scripted",
    "--engine",
    server.name,
    "--url",
    url,
    "--model",
    weights.base,
    "--out",
    path.join(dir, "service"),
    "--port",
    "0",
    "--concurrency",
    "4",
    "--json",
    "--quiet",
  ];
  const child = spawn(process.execPath, [cliFile, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const end = () => child.kill("SIGKILL");
  process.once("exit", end);
  const closed = once(child, "close");
  const lines = createInterface({ input: child.stdout });
  const [line] = await Promise.race([
    once(lines, "line"),
    closed.then(([status]) => assert.fail(`turnwright serve ended with status ${status}`)),
  ]);
  lines.resume();
  const service = JSON.parse(line).url;
  return {
    async call(method, route, body) {
      const headers = body === undefined ? {} : { "content-type": "application/json" };
      const text = body === undefined ? {} : { body: JSON.stringify(body) };
      const startedAt = Date.now();
      const reply = await fetch(service + route, { method, headers, ...text });
      return { status: reply.status, body: await reply.json(), ms: Date.now() - startedAt };
    },
    async *groups(batch) {
      const { body } = await fetch(`${service}/v1/groups?batch=${batch}`);
      for await (const each of createInterface({ input: Readable.fromWeb(body) })) {
        const { type, group } = JSON.parse(each);
        if (type === "group") yield group;
      }
    },
    folder: path.join(dir, "service"),
    async stop() {
      child.kill("SIGTERM");
      await closed;
      process.off("exit", end);
    },
  };
}

/** Announces other weights in the middle of a batch. Each token must come from the weights of its version. */
export async function announce(context, service) {
  const { weights } = context;
  const first = await service.call("POST", "/v1/policy", { version: 1, weights: weights.base });
  assert.deepEqual(first.body, { policyVersion: 1 });
  const before = await probe(context, weights.base);
  const asked = { key: "weights", split: "train", tasks: range(16), samples: 2 };
  const batch = await service.call("POST", "/v1/batches", asked);
  assert.equal(batch.status, 201, JSON.stringify(batch.body));
  const rows = [];
  let groupCount = 0;
  let second;
  let after;
  for await (const { attempts } of service.groups(batch.body.batch)) {
    for (const { outcome, rows: own } of attempts) {
      assert.notEqual(outcome, "failed");
      rows.push(...own);
    }
    groupCount += 1;
    if (groupCount !== BEFORE_COUNT) continue;
    second = await service.call("POST", "/v1/policy", { version: 2, weights: weights.next });
    assert.deepEqual(second.body, { policyVersion: 2 });
    after = await probe(context, weights.next);
  }
  const folderOf = { 1: weights.base, 2: weights.next };
  const tokens = await compareRows(rows, folderOf);
  assert.ok(tokens.rowsOfBoth > 0, "no episode spans both versions");
  return { updateMs: second.ms, before, after, rows: rows.length, ...tokens };
}

/** Restarts a server, which has its first weights then. It must get the announced ones. */
export async function lose(context, service) {
  const { weights } = context;
  const startedAt = Date.now();
  await context.restart();
  const downMs = Date.now() - startedAt;
  const asked = { key: "lost", split: "train", tasks: range(8), samples: 1 };
  const { body } = await service.call("POST", "/v1/batches", asked);
  const rows = [];
  const outcomes = {};
  for await (const { attempts } of service.groups(body.batch)) {
    for (const { outcome, rows: own } of attempts) {
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      rows.push(...own);
    }
  }
  const folderOf = { 1: weights.base, 2: weights.next };
  const { tokens, largest: most } = await compareRows(rows, folderOf);
  assert.equal(tokens[1], 0);
  return { downMs, outcomes, tokens: tokens[2], largest: most[2] };
}

/** Announces wrong folders. Each must be refused by name, and the server must keep its weights. */
export async function refuse(context, service) {
  const { weights } = context;
  const answers = {};
  for (const [name, folder] of Object.entries(weights.refused)) {
    const { status, body, ms } = await announceWrong(service, folder);
    assert.equal(status, 400, `${name}: ${JSON.stringify(body)}`);
    assert.equal(body.error.code, "bad-request");
    answers[name] = { ms, message: body.error.message };
  }
  const missing = await announceWrong(service, weights.missing);
  assert.deepEqual([missing.status, missing.body.error.code], [502, "engine-failed"]);
  answers.missing = { ms: missing.ms, message: missing.body.error.message };
  const { body: health } = await service.call("GET", "/v1/health");
  assert.deepEqual([health.state, health.policyVersion], ["running", 2]);
  return { answers, stays: await probe(context, weights.next) };
}

async function announceWrong(service, weights) {
  return await service.call("POST", "/v1/policy", { version: 3, weights });
}

/** Makes a server fail in the middle of loading. It must get all its earlier weights back. */
export async function giveBack(context) {
  const { server, url, weights } = context;
  if (server.name === "sglang") return { skipped: "it ends on a torn file" };
  const loader = createVllmWeightLoader({ urls: [url] });
  await loader.load({ path: weights.next, version: "2" });
  const failure = await loader.load({ path: weights.halfTorn, version: "3" }).then(
    () => assert.fail("a torn folder was loaded"),
    ({ code, message }) => ({ code, message }),
  );
  // If it cannot drop the part that it read from the torn folder, it stays paused.
  if (failure.code === "engine/mixed-weights") {
    const { is_paused: isPaused } = await (await fetch(`${url}/is_paused`)).json();
    assert.ok(isPaused, "a server without whole weights goes on sampling");
    return failure;
  }
  assert.equal(failure.code, "engine/server-error");
  return { ...failure, stays: await probe(context, weights.next) };
}

/** Updates while a disconnected client's request still runs. The cache of the earlier weights must be dropped. */
export async function dropped(context) {
  const { server, url, weights } = context;
  if (server.name !== "sglang") return { skipped: "it is paused, and aborts all" };
  const controller = new AbortController();
  const sampling_params = { max_new_tokens: 2_000, ignore_eos: true };
  const call = fetch(`${url}/generate`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ input_ids: probeIds, sampling_params }),
    signal: controller.signal,
  });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  controller.abort();
  await call.catch(() => {});
  const startedAt = Date.now();
  await loadSglangWeights({ urls: [url] }, { path: weights.later, version: "3" });
  return { updateMs: Date.now() - startedAt, after: await probe(context, weights.later) };
}

/** Measures the server's difference from the reference engine: scored, and sampled after a cached prompt. */
async function probe({ server, url }, folder) {
  const engine = { sglang: createSglangEngine, vllm: createVllmEngine }[server.name]({ url });
  const sampling = { temperature: 1 };
  const scored = await engine.score({ ids: probeIds, sampling });
  const { outputIds, logprobs } = await engine.generate({
    promptIds: probeIds,
    sampling: { ...sampling, extra: { ignore_eos: true } },
    maxNewTokens: 32,
    stopTokenIds: [],
    requestId: `probe-${folder}`,
    sessionId: "probe",
  });
  await engine.close();
  const expected = await score(folder, [...probeIds, ...outputIds]);
  const figures = {
    scored: largest(scored, expected),
    sampled: largest(logprobs, expected.slice(scored.length)),
  };
  for (const [what, difference] of Object.entries(figures)) {
    assert.ok(difference <= LIMITS.same, `${what} differs by ${difference} from ${folder}`);
  }
  return figures;
}

/** Compares each sampled token with the weights of its version, and with the others. */
async function compareRows(rows, folderOf) {
  const found = { 1: [], 2: [] };
  const others = { 1: [], 2: [] };
  let rowsOfBoth = 0;
  for (const row of rows) {
    const { tokenIds: ids, lossMask, logprobs, policyVersions } = row;
    const expected = {};
    for (const [version, folder] of Object.entries(folderOf)) {
      expected[version] = [0, ...(await score(folder, ids))];
    }
    const sampled = ids.flatMap((_, index) => (lossMask[index] === 1 ? [index] : []));
    const versions = sampled.map((index) => policyVersions[index]);
    assert.ok(
      versions.every((version) => version in folderOf),
      `versions ${[...new Set(versions)].join(", ")}`,
    );
    assert.deepEqual(versions, versions.toSorted(), "versions of a row go back");
    if (new Set(versions).size === 2) rowsOfBoth += 1;
    for (const index of sampled) {
      const version = policyVersions[index];
      found[version].push(Math.abs(logprobs[index] - expected[version][index]));
      others[version].push(Math.abs(logprobs[index] - expected[3 - version][index]));
    }
  }
  const byVersion = (lists, read) => ({ 1: read(lists[1]), 2: read(lists[2]) });
  const most = byVersion(found, (list) => Math.max(...list));
  const otherMean = byVersion(others, (list) => list.reduce((a, b) => a + b, 0) / list.length);
  for (const version of [1, 2].filter((each) => found[each].length > 0)) {
    assert.ok(
      most[version] <= LIMITS.same,
      `a token of version ${version} differs by ${most[version]}`,
    );
    assert.ok(Math.max(...others[version]) >= LIMITS.other, "the weights cannot be distinguished");
  }
  return { tokens: byVersion(found, (list) => list.length), largest: most, otherMean, rowsOfBoth };
}

const engines = new Map();

async function score(folder, ids) {
  if (!engines.has(folder)) {
    engines.set(folder, createReferenceEngine({ modelDir: folder, threads: 1 }));
  }
  const engine = await engines.get(folder);
  return await engine.score({ ids, sampling: { temperature: 1 } });
}

/** Closes the reference engine. */
export async function finish() {
  for (const engine of engines.values()) await (await engine).close();
}

function largest(left, right) {
  return left.reduce((most, value, index) => Math.max(most, Math.abs(value - right[index])), 0);
}

function range(count) {
  return Array.from({ length: count }, (_, index) => index);
}
