import path from "node:path";
import type { Redactor } from "../../secrets/redactor.ts";
import { parseJson } from "./episode-row.ts";
import type { Files } from "../disk/files.ts";
import { groupIdOf } from "../schedule/group-id.ts";
import { scanLines } from "../disk/line-ranges.ts";
import type { TaskRecord } from "./task-record.ts";
import { isOfOtherRun, readInputs, writeInputs } from "../recording/recording-line.ts";
import { storageError } from "../disk/storage-error.ts";
import type { Fork } from "../schedule/task-source.ts";
import { droppedType, eventsFile, startedType } from "./episode-events.ts";

/** A group that an earlier start began with a task that its source may not give again. */
export interface StartedGroup extends TaskRecord {
  readonly groupIndex: number;
  readonly groupId: string;
  /** Absent where its attempts begin anew. */
  readonly fork?: Fork;
}

/** What is noted of a group as it is begun. JSON-able. */
export interface GroupStartedEvent extends Omit<StartedGroup, "fork"> {
  readonly type: "group-begun";
  readonly fork?: WrittenFork;
}

type WrittenFork = Omit<Fork, "inputs"> & { readonly inputs: unknown };

/**
 * The event that tells of a group whose task its source may not give again.
 *
 * @param redactor - Takes secrets out of a fork's inputs, as out of those that are recorded.
 */
export function groupStartedEvent(
  { fork, ...group }: StartedGroup,
  redactor?: Pick<Redactor, "without">,
): GroupStartedEvent {
  const inputs = fork && writeInputs(fork.inputs);
  const written = fork && { ...fork, inputs: redactor?.without(inputs) ?? inputs };
  return { type: "group-begun", ...group, ...(written && { fork: written }) };
}

function readFork({ inputs, ...fork }: WrittenFork): Fork {
  return { ...fork, inputs: readInputs(inputs) };
}

/** What `events.jsonl` says of the groups of earlier starts. */
export interface RecordedGroups {
  readonly begun: readonly StartedGroup[];
  /** Places of groups that ended and were to be handed out. */
  readonly finished: ReadonlySet<number>;
  /** Places of those that were left out. */
  readonly leftOut: ReadonlySet<number>;
  /** Places of those that were taken. */
  readonly taken: ReadonlySet<number>;
  /** Lines that cannot be read; a last one, which a crash may have torn, is none of them. */
  readonly damagedCount: number;
  /** Whether a start is told of: each tells of itself before it plays anything. */
  readonly isAnyStart: boolean;
}

/** An event, as far as it is about groups. */
type GroupEvent = Partial<
  Omit<GroupStartedEvent, "type"> & {
    readonly type: string;
    readonly rolloutIds: readonly string[];
    readonly manifest: { readonly runId?: unknown };
  }
>;

/** Takes note of one event after the other. */
class GroupNotes implements RecordedGroups {
  readonly begun: StartedGroup[] = [];
  readonly finished = new Set<number>();
  readonly leftOut = new Set<number>();
  readonly taken = new Set<number>();
  damagedCount = 0;
  isAnyStart = false;
  readonly #placeOf = new Map<string, number>();
  readonly #runId: string | undefined;
  /** A start of other settings, which came to nothing, has left it in the folder. */
  #isForeign = false;

  constructor(runId: string | undefined) {
    this.#runId = runId;
  }

  note(event: GroupEvent): void {
    const { type, groupIndex, groupId = "", task, fork, rolloutIds, manifest } = event;
    if (type === startedType) {
      this.isAnyStart = true;
      this.#isForeign = isOfOtherRun({ run: textOf(manifest?.runId) }, this.#runId);
    }
    if (this.#isForeign) return;
    if (type === droppedType) this.#reopen(rolloutIds ?? []);
    if (typeof groupIndex !== "number") return;
    if (groupId !== "") this.#placeOf.set(groupId, groupIndex);
    if (type === "group-taken") this.taken.add(groupIndex);
    if (type === "group-begun" && groupId !== "" && task !== undefined) {
      const { isDrawnAgain, hash } = event;
      const noted = {
        task,
        ...(hash !== undefined && { hash }),
        ...(isDrawnAgain === true && { isDrawnAgain }),
      };
      this.begun.push({ groupIndex, groupId, ...noted, ...(fork && { fork: readFork(fork) }) });
    }
    if (type !== "group-finished" && type !== "group-left-out") return;
    const [now, before] =
      type === "group-finished" ? [this.finished, this.leftOut] : [this.leftOut, this.finished];
    now.add(groupIndex);
    before.delete(groupIndex);
  }

  /** Attempts are played again: what was decided of their groups is decided anew. */
  #reopen(rolloutIds: readonly string[]): void {
    for (const rolloutId of rolloutIds) {
      const place = this.#placeOf.get(groupIdOf(rolloutId));
      if (place === undefined) continue;
      this.finished.delete(place);
      this.leftOut.delete(place);
    }
  }
}

const types = [`"${droppedType}"`, `"${startedType}"`];

const [firstByte, lastByte] = Buffer.from("{}");

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/**
 * Reads which groups earlier starts began, ended and handed out.
 *
 * @throws UsageError where the disk refuses.
 */
export async function readRecordedGroups(
  dir: string,
  {
    files,
    runId,
  }: {
    readonly files: Files;
    /** The folder's own. */
    readonly runId: string | undefined;
  },
): Promise<RecordedGroups> {
  const file = path.join(dir, eventsFile);
  const notes = new GroupNotes(runId);
  try {
    let isLastDamaged = false;
    await scanLines(files, file, ({ bytes }) => {
      if (isLastDamaged) notes.damagedCount += 1;
      isLastDamaged = bytes.at(0) !== firstByte || bytes.at(-1) !== lastByte;
      if (!bytes.includes('"group-') && !types.some((type) => bytes.includes(type))) return;
      const event = parseJson(bytes) as GroupEvent | null | undefined;
      if (event) notes.note(event);
      else isLastDamaged = true;
    });
  } catch (error) {
    throw storageError("read", file, error);
  }
  return notes;
}
