import { UsageError } from "../errors.ts";
import { columnObject } from "../export/column-document.ts";
import { exportGroup } from "../export/export-groups.ts";
import type { ExportMember, ExportSurroundings } from "../export/exporter.ts";
import { exporters, type ExportTarget } from "../export/exporters.ts";
import { sayNote } from "../export/say-note.ts";
import { withPromptText } from "../export/slime.ts";
import type { Sample } from "../trajectory/sample.ts";
import { BatchStories } from "./batch-stories.ts";
import { maxBatchAttempts } from "./batch-request.ts";

/** The form in which a reader wants groups. */
export interface TrainerForm {
  readonly to: ExportTarget;
  /** The whole number to write for `""`, the version of tokens whose engine reported none. */
  readonly policyVersion?: number;
  /** slime: whether prompts are the text that the policy was sent, in the place of the messages. */
  readonly hasPromptText?: boolean;
}

/** The place of a group. */
export interface TrainerGroupPlace {
  /** The folder of its batch. */
  readonly folder: string;
  readonly groupIndex: number;
  /** At which it was sampled. */
  readonly temperature: number;
  /**
   * The batch's number, from 1, if the reader takes groups of several batches. Names and places
   * then contain it. Absent: they are those of the batch's own run.
   */
  readonly batchNumber?: number;
}

/** The members of a group in `/v1/groups` that this code needs. */
interface ToldGroup {
  readonly batch: string;
  readonly attempts: readonly {
    readonly rolloutId: string;
    readonly sampleIndex: number;
    readonly outcome: string;
    readonly rows: readonly Sample[];
  }[];
}

/** The number of folders with indexed episodes in memory. */
const maxStories = 64;

/**
 * Converts delivered groups to trainers' rows, with the code and the rules of `turnwright export`.
 */
export class TrainerGroups {
  readonly #stories = new Map<string, BatchStories>();
  readonly #spell: NonNullable<ExportSurroundings["spell"]>;

  /** @param spell - Spells a prompt's ids out. */
  constructor(spell: NonNullable<ExportSurroundings["spell"]>) {
    this.#spell = spell;
  }

  /** The group with the trainer's records in the place of its attempts, what was left out or cut, and why. */
  async toForm(group: object, place: TrainerGroupPlace, form: TrainerForm): Promise<object> {
    const told = group as ToldGroup;
    const { attempts: _attempts, ...about } = told;
    const head = { ...about, format: form.to };
    try {
      const members = await this.#membersOf(told, place);
      return { ...head, ...(await this.#records(members, place, form)) };
    } catch (error) {
      // A row that an export refuses: the reader gets an error and nothing of the group.
      if (!(error instanceof UsageError)) throw error;
      return { ...head, records: [], notes: [], refused: error.message };
    }
  }

  async #records(
    members: readonly ExportMember[],
    { temperature }: TrainerGroupPlace,
    { to, policyVersion, hasPromptText = false }: TrainerForm,
  ): Promise<object> {
    const { records, notes } = exportGroup(to, members, {
      temperature,
      ...(policyVersion !== undefined && { policyVersion }),
      versionRemedy: "the parameter policyVersion=N (in Python policy_version=N)",
    });
    const { layout } = exporters[to];
    const spelled = hasPromptText
      ? await Promise.all(records.map(async (record) => await withPromptText(record, this.#spell)))
      : records;
    const isOneObject = layout !== "lines" && spelled.length > 0;
    return {
      records: isOneObject ? [columnObject(spelled, layout)] : spelled,
      notes: notes.map((note) => ({ ...note, message: sayNote(note, to) })),
    };
  }

  async #membersOf(
    { batch, attempts }: ToldGroup,
    { folder, groupIndex, batchNumber }: TrainerGroupPlace,
  ): Promise<readonly ExportMember[]> {
    const played = attempts.filter(({ outcome }) => outcome !== "aborted");
    const stories = await this.#storiesOf(folder).read(played.map(({ rolloutId }) => rolloutId));
    const prefix = batchNumber === undefined ? "" : `${batch}/`;
    const before = ((batchNumber ?? 1) - 1) * maxBatchAttempts;
    return attempts.map(({ rolloutId: name, sampleIndex, rows }) => {
      const story = stories.get(name);
      const rolloutId = prefix + name;
      return {
        rolloutId,
        episode: story && { ...story, rolloutId, groupId: prefix + story.groupId },
        samples: rows.map((row) => ({ ...row, rolloutId })),
        place: {
          groupIndex: before + groupIndex,
          index: before + groupIndex * attempts.length + sampleIndex,
        },
      };
    });
  }

  /** Those that were asked for last are kept. */
  #storiesOf(folder: string): BatchStories {
    const stories = this.#stories.get(folder) ?? new BatchStories(folder);
    this.#stories.delete(folder);
    this.#stories.set(folder, stories);
    const [oldest] = this.#stories.keys();
    if (this.#stories.size > maxStories) this.#stories.delete(oldest!);
    return stories;
  }
}
