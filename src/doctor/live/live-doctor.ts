import path from "node:path";
import { UsageError } from "../../errors.ts";
import { OpenColumns } from "../../run/columns/open-columns.ts";
import { splitLines } from "../../text/split-lines.ts";
import { countOf } from "../../text/count-of.ts";
import { isObject } from "../../values/is-object.ts";
import { MismatchTally } from "../analysis/mismatch-tally.ts";
import { defaultThresholds, type Diagnosis, type Thresholds } from "../diagnosis.ts";
import { inOrder, ProblemTally } from "../input/problem-tally.ts";
import { parseTrainerLine, toTrainerRow } from "../input/read-trainer-row.ts";
import type { InputProblem } from "../input/trainer-row.ts";
import { judge } from "../verdict/judge.ts";
import { CodecStore, compareRow, openComparedRun, type ComparedRun } from "./compare-rows.ts";
import { commonFacts } from "./common-facts.ts";
import { type ComparedRow, RowWindow } from "./row-window.ts";

/** The folder and the size limit of a live diagnosis. The object can be posted to a thread. */
export interface LiveDoctorSetup {
  /** The folder with the runs' folders. */
  readonly runs: string;
  /** Maximum number of trained tokens of the newest rows that stay in memory, about 100 bytes each. */
  readonly tokenLimit: number;
}

/** Options of a diagnosis of the newest rows. JSON-able. */
export interface LiveDiagnoseOptions {
  readonly thresholds?: Partial<Thresholds>;
  /** The lag of tokens with an unknown version. If absent, their lag stays unknown. */
  readonly assumedLag?: number;
}

/** The rows that a diagnosis covers. JSON-able. */
export interface LiveWindow {
  readonly rowCount: number;
  /** Number of rows since the start that were dropped for newer rows. */
  readonly droppedRowCount: number;
  readonly tokenLimit: number;
}

/** A diagnosis of the newest rows. JSON-able. */
export interface LiveDiagnosis extends Diagnosis {
  readonly window: LiveWindow;
}

/** The rows of one post (one request of a trainer). JSON-able. */
export interface AddedRows {
  readonly rows: number;
  readonly trainedTokens: number;
}

/** Maximum number of runs with indexed rows in memory. */
const mostRuns = 8;

/** Maximum number of characters of a name in a message. */
const mostShown = 200;

const members = ["batch", "rolloutId", "segment", "logprobs", "policyVersion", "routedExperts"];

/** Compares a trainer's logprobs with rows of several runs as they arrive, and diagnoses the newest ones. */
export class LiveDoctor {
  readonly #setup: LiveDoctorSetup;
  readonly #window: RowWindow;
  readonly #codecs = new CodecStore();
  readonly #runs = new Map<string, ComparedRun>();
  #last: { readonly asked: string; readonly diagnosis: LiveDiagnosis } | undefined;

  constructor(setup: LiveDoctorSetup) {
    this.#setup = setup;
    this.#window = new RowWindow(setup.tokenLimit);
  }

  /**
   * Adds all rows of a post, or no row if one of them is wrong.
   *
   * @param chunks - JSON lines as docs/doctor.md describes, with the member `batch`.
   * @throws UsageError that names the line and the fault.
   */
  async add(chunks: AsyncIterable<Uint8Array>): Promise<AddedRows> {
    const added = new RowWindow(this.#setup.tokenLimit);
    const names = new Set<string>();
    // Closed after the post, so that the space of freed files does not wait for them.
    await using columns = new OpenColumns();
    let [line, trainedTokens] = [0, 0];
    for await (const text of splitLines(chunks, "the body")) {
      line += 1;
      if (text.trim() === "") continue;
      const row = await atLine(line, async () => await this.#compare(text, { names, columns }));
      trainedTokens += row.evidence.table.length;
      added.add(row);
    }
    if (names.size === 0) throw new UsageError("the body has no row, expected one JSON line a row");
    this.#window.addAll(added);
    this.#last = undefined;
    return { rows: names.size, trainedTokens };
  }

  async #compare(
    text: string,
    {
      names,
      columns,
    }: {
      /** The rows of the same post so far. */
      readonly names: Set<string>;
      readonly columns: OpenColumns;
    },
  ): Promise<ComparedRow> {
    const value = parseTrainerLine(text);
    if (value === undefined) throw new UsageError("it is not JSON");
    const batch = batchIn(value);
    const trainer = toTrainerRow(value, undefined);
    if ("kind" in trainer) throw new UsageError(trainer.detail);
    const { rolloutId, segment } = trainer;
    const key = `${batch} ${segment} ${rolloutId}`;
    if (names.has(key))
      throw new UsageError(`row ${segment} of ${rolloutId} is in the body already`);
    names.add(key);
    const run = await this.#runOf(batch);
    const row = await run.rows.find(trainer);
    if (row !== undefined) return await compareRow(run, { key, row, trainer, columns });
    throw new UsageError(
      `the batch ${batch} has no row ${segment} of ${quoted(rolloutId)}, or its folder was removed`,
    );
  }

  /** Returns the run of a batch. The most recently used runs stay in memory. */
  async #runOf(batch: string): Promise<ComparedRun> {
    const run = this.#runs.get(batch) ?? (await this.#open(batch));
    this.#runs.delete(batch);
    this.#runs.set(batch, run);
    const [oldest] = this.#runs.keys();
    if (this.#runs.size > mostRuns) this.#runs.delete(oldest!);
    return run;
  }

  async #open(batch: string): Promise<ComparedRun> {
    try {
      return await openComparedRun(path.join(this.#setup.runs, batch), this.#codecs);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      const message = `there is no batch ${JSON.stringify(batch)}, or its folder was removed`;
      throw new UsageError(message, { cause: error });
    }
  }

  /** Returns the diagnosis of the rows in memory. */
  diagnose(options: LiveDiagnoseOptions = {}): LiveDiagnosis {
    const asked = JSON.stringify(options);
    if (this.#last?.asked !== asked) this.#last = { asked, diagnosis: this.#diagnose(options) };
    return this.#last.diagnosis;
  }

  #diagnose({ thresholds, assumedLag }: LiveDiagnoseOptions): LiveDiagnosis {
    const { rows, droppedCount } = this.#window;
    const tally = new MismatchTally(assumedLag);
    for (const { evidence } of rows) tally.add(evidence);
    const findings = tally.findings();
    const diagnosis = judge(findings, {
      facts: commonFacts(rows),
      thresholds: { ...defaultThresholds, ...thresholds },
      problems: inOrder([...routeProblems(rows), ...findings.problems]),
      isPartial: true,
    });
    const { tokenLimit } = this.#setup;
    return {
      ...diagnosis,
      ...(rows.length === 0 && nothingPosted(diagnosis)),
      notes: [...diagnosis.notes, ...freedNote(rows)],
      window: { rowCount: rows.length, droppedRowCount: droppedCount, tokenLimit },
    };
  }
}

async function atLine<Result>(line: number, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(`line ${line}: ${error.message}`, { cause: error });
  }
}

/** Returns the batch that a line names. Refuses unknown members of the line. */
function batchIn(value: unknown): string {
  if (!isObject(value)) throw new UsageError("it is not an object");
  for (const name of Object.keys(value)) {
    if (members.includes(name)) continue;
    throw new UsageError(`there is no member ${quoted(name)}: expected ${members.join(", ")}`);
  }
  const { batch } = value;
  // The name is one of a folder.
  if (typeof batch === "string" && /^b\d{1,15}$/.test(batch)) return batch;
  throw new UsageError('"batch" is missing or wrong, expected the batch of the row, such as "b1"');
}

/** Quotes a name of a post, which may have megabytes. */
function quoted(name: string): string {
  return JSON.stringify(name.length > mostShown ? `${name.slice(0, mostShown)}…` : name);
}

/** Finds rows without routes, or with too few routes, if other rows have routes. */
function routeProblems(rows: readonly ComparedRow[]): readonly InputProblem[] {
  const problems = new ProblemTally();
  if (!rows.some(({ routes }) => routes.type === "both")) return [];
  for (const { routes, evidence } of rows) {
    const count =
      routes.type === "engine-only"
        ? routes.neededCount
        : routes.type === "both"
          ? routes.missingCount
          : 0;
    if (count > 0) problems.add("missing-routes", evidence.name, count);
  }
  return problems.problems();
}

function nothingPosted({ causes }: Diagnosis): Pick<Diagnosis, "text" | "causes"> {
  const text =
    "Nothing could be compared: the trainer has posted no logprobs since the service started.";
  return { text, causes: causes.map((cause) => ({ ...cause, text })) };
}

function freedNote(rows: readonly ComparedRow[]): readonly string[] {
  const count = rows.filter(({ routes }) => routes.type === "freed").length;
  if (count === 0) return [];
  return [
    `The routes of ${countOf(count, "row")} were freed when the rows were acknowledged, so the trainer's were not ` +
      "compared: post earlier, or start the service with --keep-columns.",
  ];
}
