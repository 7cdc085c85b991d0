import type { EpisodeStory } from "../run/folder/episode-row.ts";
import type { SlimePlace } from "../run/slime/slime.ts";
import type { ColumnSpecs } from "../columns/index.ts";
import type { Sample } from "../trajectory/sample.ts";
import type { ColumnExport } from "./columns/column-rules.ts";
import type { ExportRecord } from "./export-record.ts";

/** Kinds of rows for which a trainer needs a rule of its own. */
export const exportKinds = [
  /** The episode met one of its limits. */
  "truncated",
  /** The engine, the user, the environment or the grader failed. */
  "failed",
  /** No score was computed, and no party failed, for example because a deadline ended the episode. */
  "unscored",
  /** The attempt was not played to its end. */
  "aborted",
  /** A row without sampled tokens. */
  "empty",
  /** Several rows of one episode, for example of sub-agents or after compaction. */
  "segments",
  /** The attempts of a group begin with different prompts, for example with another date. */
  "differentPrompts",
  /** Tokens of several policy versions in one row. */
  "mixedVersions",
  /** A sampled token has a policy version that is not a whole number. */
  "unnamedVersions",
  /** Tokens after the last sampled token. */
  "environmentTail",
  /** Tokens after the last sampled token that no engine computed, in a run with a side column of computed tokens. */
  "uncomputedTail",
  /** Named components of the reward. */
  "components",
  /** Rewards of single turns. */
  "turnRewards",
] as const;

/** One of `exportKinds`. */
export type ExportKind = (typeof exportKinds)[number];

/** The action that an exporter takes for a kind of row. */
export type ExportAction =
  /** Export the row unchanged. */
  | "keep"
  /** Cut the tokens after the last sampled one, and report the cut. */
  | "cut"
  /** Export the attempt without the concerned part, such as the components of its reward, and report that. */
  | "drop"
  /** Export one row of the attempt, and report the rows that are left out. See `Exporter.chooseRow`. */
  | "one-row"
  /** Leave out the attempt, and report the omission. */
  | "leave-out"
  /** Leave out the attempt's complete group, and report the omission. */
  | "leave-out-group"
  /** Export nothing: the whole export fails. */
  | "refuse";

/** An exporter's action for one kind of row, and the reason for the action. */
interface ExportRule {
  readonly action: ExportAction;
  /**
   * The trainer's field that shows the kind, or the reason why the row is not exported. For people.
   */
  readonly why: string;
}

/** An exporter's rule for each kind. */
export type ExportRules = Readonly<Record<ExportKind, ExportRule>>;

/** One attempt of a group, with its episode and its rows. */
export interface ExportMember {
  readonly rolloutId: string;
  /** The episode. Absent if the attempt has not finished. */
  readonly episode: EpisodeStory | undefined;
  readonly samples: readonly Sample[];
  readonly place: SlimePlace;
}

/** A row with the values that exporters derive from it. */
export interface ReadyRow extends Pick<
  Sample,
  "tokenIds" | "promptLength" | "lossMask" | "logprobs" | "turns"
> {
  readonly sample: Sample;
  /** The row as it is in the run. It may have more tokens at its end than `sample`. */
  readonly stored: Sample;
  /** The version of each sampled token, and `""` for other tokens. */
  readonly policyVersions: readonly string[];
}

/** An attempt that has a reward and at least one row. */
export interface ReadyAttempt {
  readonly rolloutId: string;
  readonly groupId: string;
  readonly episode: EpisodeStory;
  readonly reward: number;
  /** The reward minus the mean over the exported attempts of the group. */
  readonly advantage: number;
  /** The advantage of each turn of the episode. Absent if all turns have the attempt's advantage. */
  readonly turnAdvantages?: readonly number[];
  /** 0-based index of the attempt in its planned group. */
  readonly repetition: number;
  readonly place: SlimePlace;
  readonly rows: readonly ReadyRow[];
}

/** An omission or a change in an export. JSON-able. */
export interface ExportNote {
  readonly rolloutId: string;
  readonly kind: ExportKind;
  readonly action: Exclude<ExportAction, "keep" | "refuse">;
  /** The number of tokens that were cut, or of sampled tokens in the rows that were left out. */
  readonly tokenCount?: number;
  /** The number of rows of the attempt that were left out. Present only for `one-row`. */
  readonly rowCount?: number;
}

/** Facts about the run that its rows do not contain. */
export interface ExportSurroundings {
  /** The policy version, a whole number, of tokens without one (`""`). */
  readonly policyVersion?: number;
  /**
   * The name of the caller's option for `policyVersion`, for error messages. Default:
   * `policyVersion`.
   */
  readonly versionRemedy?: string;
  /**
   * The weight of a reward one turn later, from 0 to 1, for advantages of turns (see `turnAdvantages()`). Default: all
   * tokens of an attempt have one advantage.
   */
  readonly turnDiscount?: number;
  /** True for a reward at the last token of each turn, for SkyRL. Default: one reward an attempt. */
  readonly hasTurnRewards?: boolean;
  /** The temperature at which the run sampled. prime-rl's rows need it. */
  readonly temperature?: number;
  /**
   * The name of the caller's option for `temperature`, for error messages. Default: `temperature`.
   */
  readonly temperatureRemedy?: string;
  /**
   * Returns the text of a prompt's ids, for slime's `prompt`. Default: `prompt` has the messages.
   */
  readonly spell?: (ids: readonly number[]) => Promise<string>;
  /** The run's side columns that the export contains. Absent if it contains none. */
  readonly columns?: ColumnSpecs;
}

/**
 * The layout of a file with one JSON object: the fields that are lists over the rows, and the other
 * members.
 */
export interface ColumnLayout {
  readonly columns: readonly string[];
  /** Columns that are left out if all of their values equal the given one. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  readonly rest: Readonly<Record<string, unknown>>;
}

/** The export format of one trainer. */
export interface Exporter {
  /** The trainer, and its type or function that reads the records. */
  readonly trainer: string;
  /** JSON lines, or one JSON object with lists. */
  readonly layout: "lines" | ColumnLayout;
  readonly rules: ExportRules;
  /** The side columns that the trainer takes, and their form. */
  readonly columns: ColumnExport;
  /** True if the records have advantages of single turns if `turnDiscount` is given. */
  readonly hasTurnAdvantages?: true;
  /** True if the records have rewards of single turns if `hasTurnRewards` is given. */
  readonly takesTurnRewards?: true;
  /** True if `prompt` can have the text that the policy received, in place of the messages. */
  readonly hasPromptText?: true;
  /** True if a record has all rows of an attempt that the trainer takes. */
  readonly isPerAttempt?: true;
  /** The path of a record's lineage. Default: `lineage`. */
  readonly lineagePath?: string;
  /**
   * Chooses the row of an attempt if the rule for several rows is `one-row`.
   *
   * @param rows - All rows of the attempt that have a trained token. At least one.
   */
  readonly chooseRow?: (rows: readonly Sample[]) => Sample;
  /** Returns the records of one attempt. Has no side effects. */
  readonly toRecords: (
    attempt: ReadyAttempt,
    surroundings: ExportSurroundings,
  ) => readonly ExportRecord[];
}
