import type { ColumnSource } from "../columns/column-source.ts";
import type { ExpertShape } from "../columns/column-specs.ts";
import { UsageError } from "../errors.ts";
import type { Sample } from "../trajectory/sample.ts";
import { MismatchTally } from "./analysis/mismatch-tally.ts";
import { examineRow } from "./analysis/row-evidence.ts";
import type { RowPair } from "./analysis/row-pair.ts";
import { readPlainKinds, type KindReader } from "./analysis/token-kinds.ts";
import { defaultThresholds, type Diagnosis, type Thresholds } from "./diagnosis.ts";
import { pairRoutes } from "./pair-routes.ts";
import { inOrder, ProblemTally } from "./input/problem-tally.ts";
import type { TrainerRow } from "./input/trainer-row.ts";
import { nameOf, TrainerRows } from "./input/trainer-rows.ts";
import type { RunFacts } from "./verdict/evidence.ts";
import { judge } from "./verdict/judge.ts";

/** Options of `diagnose()`. */
export interface DiagnoseOptions {
  /**
   * The run's sampling. If absent, it is unknown, and a wrong temperature or token set is named with less certainty.
   */
  readonly facts?: RunFacts;
  /** The largest values that count as healthy. Absent members have their defaults. */
  readonly thresholds?: Partial<Thresholds>;
  /** The lag of tokens with an unknown version, a whole number. If absent, their lag stays unknown. */
  readonly assumedLag?: number;
  /** True if the trainer's rows may lack rows of the run without a finding. Default false. */
  readonly isPartial?: boolean;
  /** Returns the kinds of a row's tokens. Default: the first and the last one of each turn, and others. */
  readonly kinds?: KindReader;
  /** The engine's routes. If absent, routes are not compared. */
  readonly routes?: { readonly shape: ExpertShape; readonly source: ColumnSource };
}

/**
 * Compares a trainer's logprobs with the engine's, and names the causes of their difference. Changes nothing.
 *
 * @param rows - The training rows, each once.
 * @param trainer - The trainer's rows. They stay in memory with all trained tokens, about 100 bytes a trained token.
 */
export async function diagnose(
  rows: AsyncIterable<Sample> | Iterable<Sample>,
  trainer: TrainerRows | Iterable<TrainerRow>,
  options: DiagnoseOptions = {},
): Promise<Diagnosis> {
  const { facts = {}, assumedLag, isPartial = false, kinds = readPlainKinds } = options;
  const given = trainer instanceof TrainerRows ? trainer : collect(trainer);
  const problems = new ProblemTally();
  const tally = new MismatchTally(assumedLag);
  const known = new Set<TrainerRow>();
  const hasRoutes = given.haveRoutes;
  for await (const row of rows) {
    const own = given.find(row);
    if (own !== undefined) known.add(own);
    if (!row.lossMask.includes(1)) continue;
    if (own === undefined) problems.add("missing-row", nameOf(row));
    else if (own.logprobs.length !== row.tokenIds.length) {
      const counts = `${own.logprobs.length} logprobs for ${row.tokenIds.length} tokens`;
      problems.add("wrong-length", `${nameOf(row)}: ${counts}`);
    } else {
      const routes = await routesOf(row, own, { options, problems, hasRoutes });
      const pair = { row, trainer: own, kinds: await kinds(row), routes };
      tally.add(await examineRow(pair));
    }
  }
  for (const row of given.rows()) if (!known.has(row)) problems.add("unknown-row", nameOf(row));
  const findings = tally.findings();
  return judge(findings, {
    facts: { ...facts, ...(options.routes !== undefined && { hasRoutes: true }) },
    thresholds: { ...defaultThresholds, ...options.thresholds },
    problems: inOrder([...given.problems(), ...problems.problems(), ...findings.problems]),
    isPartial,
  });
}

function collect(rows: Iterable<TrainerRow>): TrainerRows {
  const given = new TrainerRows();
  for (const row of rows) given.add(row, `entry ${given.count + 1}`);
  return given;
}

/** Returns the routes of both sides, if the trainer has routes of the engine's shape for the row. */
async function routesOf(
  row: Sample,
  { routedExperts }: TrainerRow,
  {
    options,
    problems,
    hasRoutes,
  }: {
    readonly options: DiagnoseOptions;
    readonly problems: ProblemTally;
    /** True if a row of the trainer has routes. */
    readonly hasRoutes: boolean;
  },
): Promise<RowPair["routes"]> {
  const parts = row.columns?.routedExperts;
  if (options.routes === undefined || parts === undefined) return undefined;
  // The routes of each token before the last trained one decide a logprob.
  const needed = row.lossMask.lastIndexOf(1);
  if (routedExperts === undefined) {
    if (hasRoutes) problems.add("missing-routes", nameOf(row), needed);
    return undefined;
  }
  try {
    const routes = await pairRoutes(parts, routedExperts, options.routes);
    const missing = needed - routes.trainer.rows;
    if (missing > 0) problems.add("missing-routes", nameOf(row), missing);
    return routes;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    problems.add("bad-routes", `${nameOf(row)}: ${error.message}`);
  }
  return undefined;
}
