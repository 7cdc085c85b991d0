import { UsageError } from "../errors.ts";
import { columnObject } from "../export/column-document.ts";
import { exportGroup } from "../export/export-group.ts";
import type { ExportMember, ExportSurroundings } from "../export/exporter.ts";
import { exporters, type ExportTarget } from "../export/exporters.ts";
import { sayNote } from "../export/say-note.ts";
import { withPromptText } from "../export/trainers/slime.ts";
import type { Sample } from "../trajectory/sample.ts";
import { BatchStories } from "./batch-stories.ts";
import { maxBatchAttempts } from "./batch-request.ts";

/** The trainer's form that a reader requests. */
export interface TrainerForm {
  readonly to: ExportTarget;
  /** The policy version, a whole number, of tokens without one (`""`). */
  readonly policyVersion?: number;
  /** slime only: true to write prompts as text in place of the messages. */
  readonly hasPromptText?: boolean;
}

/** The origin of a group: its batch, folder and temperature. */
export interface TrainerGroupPlace {
  /** The folder of its batch. */
  readonly folder: string;
  readonly groupIndex: number;
  /** The temperature at which the group was sampled. */
  readonly temperature: number;
  /**
   * The batch's number, from 1, if the reader gets groups of several batches. Rollout ids and indexes then include it.
   * Absent: they are those of the batch's own run.
   */
  readonly batchNumber?: number;
}

/** The members of a group in `/v1/groups` that this code needs. */
interface DescribedGroup {
  readonly batch: string;
  readonly attempts: readonly {
    readonly rolloutId: string;
    readonly sampleIndex: number;
    readonly outcome: string;
    readonly rows: readonly Sample[];
  }[];
}

/** Maximum number of folders with indexed episodes in memory. */
const maxStories = 64;

/**
 * Converts delivered groups to trainers' rows, with the code and the rules of `turnwright export`.
 */
export class TrainerGroups {
  readonly #stories = new Map<string, BatchStories>();
  readonly #spell: NonNullable<ExportSurroundings["spell"]>;

  /** @param spell - Returns the text of a prompt's ids. */
  constructor(spell: NonNullable<ExportSurroundings["spell"]>) {
    this.#spell = spell;
  }

  /**
   * Returns the group with the trainer's records in place of its attempts. `notes` lists what was
   * left out or cut, and why. `refused` is the reason if the rules refuse the group.
   */
  async toForm(group: object, place: TrainerGroupPlace, form: TrainerForm): Promise<object> {
    const described = group as DescribedGroup;
    const { attempts: _attempts, ...about } = described;
    const head = { ...about, format: form.to };
    try {
      const members = await this.#membersOf(described, place);
      return { ...head, ...(await this.#records(members, place, form)) };
    } catch (error) {
      // If the rules refuse a row, the reader gets the reason and no records of the group.
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
    { batch, attempts }: DescribedGroup,
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

  /** Returns the indexed episodes of a folder. Keeps the most recently used ones. */
  #storiesOf(folder: string): BatchStories {
    const stories = this.#stories.get(folder) ?? new BatchStories(folder);
    this.#stories.delete(folder);
    this.#stories.set(folder, stories);
    const [oldest] = this.#stories.keys();
    if (this.#stories.size > maxStories) this.#stories.delete(oldest!);
    return stories;
  }
}
