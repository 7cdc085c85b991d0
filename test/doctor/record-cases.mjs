// Records the cases of recorded-cases.jsonl: small models play and score, and only numbers are kept.
//
//     npm run build && node test/doctor/record-cases.mjs PYTHON_WITH_TORCH
//
// The engine is the reference engine (single precision). The trainer is score-rows.py (PyTorch on the CPU).
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { createReferenceEngine } from "../../dist/src/engine/index.js";
import { writeRandomModel } from "../../dist/src/engine/reference/random-model.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const python = process.argv[2];
const scratch = mkdtempSync(path.join(tmpdir(), "doctor-"));
const storefront = path.join(root, "models/storefront-2m");

/** Calls score-rows.py. */
function callScorer(request) {
  const script = path.join(root, "test/doctor/score-rows.py");
  const { status, stdout, stderr } = spawnSync(python, [script], {
    input: JSON.stringify(request),
    encoding: "utf8",
    maxBuffer: 2 ** 30,
  });
  if (status !== 0) throw new Error(stderr);
  return stdout === "" ? undefined : JSON.parse(stdout).rows;
}

/** Scores rows. Returns each row's logprobs and routes. */
function score(rows, { model = storefront, dtype = "float32", temperature = 1, routesOf } = {}) {
  const asked = rows.map((row) => ({
    ids: row.tokenIds,
    ...(routesOf && { routes: routesOf(row) }),
  }));
  return callScorer({ model, dtype, temperature, rows: asked });
}

/** Plays storefront, and returns its rows. */
function play(name, model, version, flags = []) {
  const out = path.join(scratch, `${name}-run`);
  const command = ["rollout", "--env", "storefront", "--user", "scripted", "--engine", "reference"];
  const scope = [
    "--tasks",
    "0-7",
    "--samples",
    "1",
    "--max-turns",
    "8",
    "--quiet",
    "--max-tokens-per-turn",
    "48",
  ];
  const args = [...command, "--model", model, ...scope, "--out", out, ...flags];
  execFileSync(process.execPath, [path.join(root, "dist/src/cli/start.cjs"), ...args]);
  const lines = readFileSync(path.join(out, "samples.jsonl"), "utf8").trimEnd().split("\n");
  return lines
    .map((line) => JSON.parse(line))
    .toSorted((one, other) => (one.rolloutId < other.rolloutId ? -1 : 1))
    .map((row) => ({ ...row, rolloutId: `${name} ${row.rolloutId}`, version }));
}

/** Samples rows from a tiny mixture of experts, with their routes. */
async function sampleMixture(model) {
  const engine = await createReferenceEngine({ modelDir: model, threads: 0, policyVersion: "0" });
  const specs = { routedExperts: mixtureShape };
  const rows = [];
  for (let index = 0; index < 12; index++) {
    const promptIds = Array.from({ length: 12 }, (_, at) => (17 * index + 29 * at) % 101);
    const generation = await engine.generate({
      promptIds,
      sampling: { temperature: 1, seed: index },
      maxNewTokens: 32,
      stopTokenIds: [],
      columns: { specs, knownRows: 0 },
      requestId: "r",
      sessionId: "s",
    });
    const [part] = generation.columns.routedExperts;
    const tokenIds = [...promptIds, ...generation.outputIds];
    const padded = (values, filler) => [...promptIds.map(() => filler), ...values];
    rows.push({
      rolloutId: `mixture ${index}`,
      tokenIds,
      lossMask: padded(
        generation.outputIds.map(() => 1),
        0,
      ),
      logprobs: padded(generation.logprobs, 0),
      turns: [{ start: promptIds.length, end: tokenIds.length, finish: "length" }],
      version: 0,
      routes: part.bytes,
    });
  }
  await engine.close();
  return rows;
}

const mixtureShape = { layerCount: 3, perToken: 2, expertCount: 8 };
const mixtureConfig = {
  architectures: ["Qwen3MoeForCausalLM"],
  vocab_size: 101,
  hidden_size: 32,
  intermediate_size: 40,
  num_hidden_layers: 3,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  max_position_embeddings: 512,
  rope_theta: 10000,
  rms_norm_eps: 1e-6,
  tie_word_embeddings: true,
  num_experts: 8,
  num_experts_per_tok: 2,
  moe_intermediate_size: 24,
  norm_topk_prob: true,
  mlp_only_layers: [1],
};

/** The engine's routes as [tokens][layers][experts]. The last token has none, and its own do not matter. */
function routesOf({ routes, tokenIds }) {
  return tokenIds.map((_, token) =>
    [0, 1, 2].map((layer) =>
      [0, 1].map((place) => routes[(token * 3 + layer) * 2 + place] ?? place),
    ),
  );
}

/** Filler in place of all routes. */
const fillerOf = ({ tokenIds }) =>
  tokenIds.map(() => [
    [0, 1],
    [0, 1],
    [0, 1],
  ]);

/** Each token has the routes of the token before. */
function shiftedOf(row) {
  const own = routesOf(row);
  return own.map((_, token) => own[Math.max(0, token - 1)]);
}

const round = (value) => (value === null ? null : Number(value.toPrecision(4)));

/** A case as it is kept: logprobs of trained tokens, and of the trainer two more on each side. */
function toCase(name, rows, trainer, { facts = {}, version, shape } = {}) {
  return {
    name,
    facts,
    trainerVersion: version,
    ...(shape && { shape }),
    rows: rows.map((row, index) => ({
      rolloutId: row.rolloutId,
      length: row.tokenIds.length,
      version: row.version,
      turns: row.turns.map(({ start, end, finish }) => [start, end, finish]),
      engine: row.turns.map(({ start, end }) => row.logprobs.slice(start, end).map(round)),
      trainer: row.turns.map(({ start, end }) =>
        trainer[index].logprobs.slice(start - 2, end + 2).map(round),
      ),
      ...(row.routes && {
        engineRoutes: Buffer.from(row.routes).toString("base64"),
        trainerRoutes: Buffer.from(trainer[index].routes.flat(2)).toString("base64"),
      }),
    })),
  };
}

const dense = play("dense", storefront, 1);
const right = score(dense);
const half = score(dense, { dtype: "bfloat16" });
const older = path.join(scratch, "older");
callScorer({ model: storefront, to: older, perturb: 0.2, seed: 1 });
const early = play("early", older, 0);
const stale = [...early, ...dense];
const renamed = early.map((row) => ({ ...row, version: 1 }));
const cool = play("cool", storefront, 1, ["--temperature", "0.7"]);
const kept = play("kept", storefront, 1, [
  "--top-k",
  "20",
  "--top-p",
  "0.9",
  "--columns",
  "keptTokens=20",
]);

const mixture = path.join(scratch, "mixture");
await writeRandomModel(mixture, { config: mixtureConfig, seed: 1 });
const sampled = await sampleMixture(mixture);
const mixtureCase = (name, options) => {
  const trainer = score(sampled, { model: mixture, ...options });
  return toCase(name, sampled, trainer, { version: 0, shape: mixtureShape });
};

const cases = [
  toCase("fp32 trainer, fp32 engine", dense, right, { version: 1 }),
  toCase(
    "fp32 trainer, bf16 engine",
    dense.map((row, index) => ({ ...row, logprobs: half[index].logprobs })),
    right,
    { version: 1 },
  ),
  toCase(
    "logprobs shifted by one",
    dense,
    right.map(({ logprobs }) => ({ logprobs: [...logprobs.slice(1), null] })),
    { version: 1 },
  ),
  toCase("stale weights", stale, score(stale), { version: 1 }),
  toCase("other weights under the same version", renamed, score(renamed), { version: 1 }),
  toCase("trainer at temperature 1, engine at 0.7", cool, score(cool), {
    version: 1,
    facts: { temperature: 0.7, logprobConvention: "tempered" },
  }),
  toCase("engine over kept tokens, trainer over all", kept, score(kept), {
    version: 1,
    facts: { temperature: 1, hasTruncation: true, hasKeptTokens: true },
  }),
  mixtureCase("routes replayed", { routesOf }),
  mixtureCase("routes replayed, bf16 trainer", { routesOf, dtype: "bfloat16" }),
  mixtureCase("routes chosen again by a bf16 trainer", { dtype: "bfloat16" }),
  mixtureCase("routes dropped and padded", { routesOf: fillerOf }),
  mixtureCase("routes shifted by one", { routesOf: shiftedOf }),
];
writeFileSync(
  path.join(root, "test/doctor/recorded-cases.jsonl"),
  cases.map((one) => `${JSON.stringify(one)}\n`).join(""),
);
rmSync(scratch, { recursive: true });
