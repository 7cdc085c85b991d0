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

/** A group that an earlier start started, with its task, which the source may not give again. */
export interface StartedGroup extends TaskRecord {
  readonly groupIndex: number;
  readonly groupId: string;
  /** The recorded attempt from which the group's attempts branch. Absent if they play from their first turn. */
  readonly fork?: Fork;
}

/** The event of a started group. JSON-able. */
export interface GroupStartedEvent extends Omit<StartedGroup, "fork"> {
  readonly type: "group-begun";
  readonly fork?: WrittenFork;
}

type WrittenFork = Omit<Fork, "inputs" | "columns"> & { readonly inputs: unknown };

/**
 * Makes the event of a group. The source may not give its task again.
 *
 * @param redactor - Removes secrets from a fork's inputs, as from recorded inputs.
 */
export function groupStartedEvent(
  { fork, ...group }: StartedGroup,
  redactor?: Pick<Redactor, "without">,
): GroupStartedEvent {
  const inputs = fork && writeInputs(fork.inputs);
  const written = fork && {
    place: fork.place,
    inputs: redactor?.without(inputs) ?? inputs,
    seed: fork.seed,
  };
  return { type: "group-begun", ...group, ...(written && { fork: written }) };
}

function readFork({ inputs, ...fork }: WrittenFork): Fork {
  return { ...fork, inputs: readInputs(inputs) };
}

/** The groups of earlier starts, as `events.jsonl` has them. */
export interface RecordedGroups {
  readonly started: readonly StartedGroup[];
  /** Indexes of groups that ended and were to be delivered. */
  readonly finished: ReadonlySet<number>;
  /** Indexes of groups that were left out. */
  readonly leftOut: ReadonlySet<number>;
  /** Indexes of groups that were taken. */
  readonly taken: ReadonlySet<number>;
  /** The number of unreadable lines, without a torn last line. */
  readonly damagedCount: number;
  /** True if the file has the event of a start. Every start writes one before it plays. */
  readonly isAnyStart: boolean;
}

/** The members of an event about groups. */
type GroupEvent = Partial<
  Omit<GroupStartedEvent, "type"> & {
    readonly type: string;
    readonly rolloutIds: readonly string[];
    readonly manifest: { readonly runId?: unknown };
  }
>;

/** Collects the groups from one event after the other. */
class GroupEvents implements RecordedGroups {
  readonly started: StartedGroup[] = [];
  readonly finished = new Set<number>();
  readonly leftOut = new Set<number>();
  readonly taken = new Set<number>();
  damagedCount = 0;
  isAnyStart = false;
  readonly #placeOf = new Map<string, number>();
  readonly #runId: string | undefined;
  /** True while the events are of a start with other settings, which sampled nothing. */
  #isForeign = false;

  constructor(runId: string | undefined) {
    this.#runId = runId;
  }

  add(event: GroupEvent): void {
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
      const record = {
        task,
        ...(hash !== undefined && { hash }),
        ...(isDrawnAgain === true && { isDrawnAgain }),
      };
      this.started.push({ groupIndex, groupId, ...record, ...(fork && { fork: readFork(fork) }) });
    }
    if (type !== "group-finished" && type !== "group-left-out") return;
    const [now, before] =
      type === "group-finished" ? [this.finished, this.leftOut] : [this.leftOut, this.finished];
    now.add(groupIndex);
    before.delete(groupIndex);
  }

  /** Forgets the decisions about groups with attempts that are played again. */
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
 * Reads which groups earlier starts started, completed and delivered.
 *
 * @throws UsageError if the disk fails.
 */
export async function readRecordedGroups(
  dir: string,
  {
    files,
    runId,
  }: {
    readonly files: Files;
    /** The folder's run id. */
    readonly runId: string | undefined;
  },
): Promise<RecordedGroups> {
  const file = path.join(dir, eventsFile);
  const events = new GroupEvents(runId);
  try {
    let isLastDamaged = false;
    await scanLines(files, file, ({ bytes }) => {
      if (isLastDamaged) events.damagedCount += 1;
      isLastDamaged = bytes.at(0) !== firstByte || bytes.at(-1) !== lastByte;
      if (!bytes.includes('"group-') && !types.some((type) => bytes.includes(type))) return;
      const event = parseJson(bytes) as GroupEvent | null | undefined;
      if (event) events.add(event);
      else isLastDamaged = true;
    });
  } catch (error) {
    throw storageError("read", file, error);
  }
  return events;
}
