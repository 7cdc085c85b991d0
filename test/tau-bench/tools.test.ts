import path from "node:path";
import { describe, expect, test } from "vitest";
import {
  createTauAirline,
  createTauRetail,
  loadTauBenchBundle,
  type TauEnvironment,
} from "../../environments/tau-bench/index.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import { sharedData } from "../../src/testing/shared-data.fixture.ts";
import type { RecordedAction } from "../support/tau-bench-golden.ts";
import {
  asRecorded,
  openInventedTau,
  readGolden,
  readOwnGolden,
  recordedObservation,
} from "../support/tau-bench-golden.ts";

const shared = sharedData();

interface RecordedCall extends RecordedAction {
  readonly exc?: string;
  readonly hash_after?: string;
  readonly skipped?: string;
}

interface RecordedCalls {
  readonly seq: number;
  readonly calls: readonly RecordedCall[];
  readonly data_hash: string;
}

interface RecordedGroundTruth {
  readonly index: number;
  readonly actions: readonly RecordedCall[];
  readonly data_hash: string;
}

/** Makes the recorded calls, and expects the recorded answers and hashes of the data. */
async function expectRecorded(
  environment: TauEnvironment,
  recorded: readonly RecordedCalls[],
): Promise<void> {
  const initial = await environment.openTools().hash();
  for (const { seq, calls, data_hash } of recorded) {
    const toolbox = environment.openTools();
    let hash = initial;
    for (const [index, call] of calls.entries()) {
      const place = `sequence ${seq}, call ${index}: ${call.name} ${call.kwargs_json}`;
      const outcome = toolbox.call({ name: call.name, arguments: readKwargs(call) });
      expect(asRecorded(outcome?.observation ?? null, call), place).toEqual(
        recordedObservation(call),
      );
      expect(outcome?.exception, place).toBe(call.exc);
      const after = await toolbox.hash();
      hash = call.hash_after ?? hash;
      expect(after, place).toBe(hash);
    }
    expect(await toolbox.hash()).toBe(data_hash);
  }
}

describe("τ-bench's tools on invented data", () => {
  test.each(["retail", "airline"] as const)(
    "%s: every call answers and changes the data as in the Python original",
    async (name) => {
      await using tau = await openInventedTau();
      const rows = readOwnGolden<RecordedCalls & { env: string }>("tool-calls");
      const recorded = rows.filter(({ env }) => env === name);
      expect(recorded).toHaveLength(60);
      await expectRecorded(tau[name], recorded);
    },
  );
});

describe.skipIf(shared === null)("τ-bench tools against recordings of the Python original", () => {
  const folder = path.join(shared ?? "", "data/tau-bench");

  test.each(["retail", "airline"])(
    "%s: every call answers and changes the data as recorded",
    async (name) => {
      const environment = await open(name);
      await expectRecorded(
        environment,
        readGolden<RecordedCalls>(shared ?? "", `tool-calls-${name}`),
      );
    },
    120_000,
  );

  test.each([
    ["retail", "test"],
    ["retail", "train"],
    ["retail", "dev"],
    ["airline", "test"],
  ])(
    "%s/%s: ground-truth actions answer and end as recorded",
    async (name, split) => {
      const environment = await open(name);
      for (const row of readGolden<RecordedGroundTruth>(
        shared ?? "",
        `ground-truth-${name}-${split}`,
      )) {
        const task = environment.task(split, row.index);
        expect(task.data.actions.map((action) => action.name)).toEqual(
          row.actions.map((action) => action.name),
        );
        const toolbox = environment.openTools();
        for (const action of row.actions) {
          if (action.skipped !== undefined) continue;
          const outcome = toolbox.call({ name: action.name, arguments: readKwargs(action) });
          expect(
            asRecorded(outcome?.observation ?? null, action),
            `task ${row.index}: ${action.name}`,
          ).toEqual(recordedObservation(action));
        }
        expect(await toolbox.hash(), `task ${row.index}`).toBe(row.data_hash);
      }
    },
    120_000,
  );

  async function open(name: string) {
    const bundle = await loadTauBenchBundle(folder);
    return name === "retail" ? createTauRetail({ bundle }) : createTauAirline({ bundle });
  }
});

function readKwargs({ kwargs_json }: RecordedAction): PyDict {
  return parsePythonJson(kwargs_json) as PyDict;
}
