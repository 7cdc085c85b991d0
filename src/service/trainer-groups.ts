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
  /** The whole number that stands for `""`, where the engine named no version. */
  readonly policyVersion?: number;
  /** slime: whether prompts are the text that the policy was sent, in the place of the messages. */
  readonly hasPromptText?: boolean;
}

/** Where a group belongs. */
export interface TrainerGroupPlace {
  /** The folder of its batch. */
  readonly folder: string;
  readonly groupIndex: number;
  /** At which it was sampled. */
  readonly temperature: number;
  /**
   * Counts batches from 1, where the reader takes groups of several: names and places are told apart by it
   * then. Absent: they are those of the batch's own run.
   */
  readonly batchNumber?: number;
}

/** A group as `/v1/groups` tells it, as far as it is needed here. */
interface ToldGroup {
  readonly batch: string;
  readonly attempts: readonly {
    readonly rolloutId: string;
    readonly sampleIndex: number;
    readonly outcome: string;
    readonly rows: readonly Sample[];
  }[];
}

/** Folders whose episodes are known by their places. */
const maxStories = 64;

/** Makes trainers' rows of groups that were told: by the code and the rules of `turnwright export`. */
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
      // What stops an export of a file: nothing of the group is passed on, and its reader is told.
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
