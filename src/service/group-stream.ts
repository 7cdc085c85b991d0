import { systemClock, type Clock } from "../async/clock.ts";
import { encodeLine } from "../run/disk/encode-line.ts";
import { hasEnded } from "./batch.ts";
import type { GroupStore } from "./group-store.ts";
import type { RolloutService } from "./rollout-service.ts";
import { ServiceError } from "./service-error.ts";
import type { GroupEntry } from "./service-journal.ts";
import type { TrainerForm } from "./trainer-groups.ts";

/** Which groups a reader asks for. */
export interface GroupWish {
  /** Groups up to it are passed over. */
  readonly cursor: number;
  /** Only this one's. */
  readonly batch?: string;
  /** The trainer's form. Absent: groups as they were delivered, byte for byte. */
  readonly form?: TrainerForm;
}

/** Silence after which a stream says that it waits, in milliseconds. */
const waitMs = 10_000;

/** Largest group that is made into a trainer's form, in bytes of its line. */
const maxFormedSize = 256 * 1024 * 1024;

/**
 * Streams finished groups as lines of JSON. It reads on from the disk when the reader has taken what
 * was read, so that a reader that stalls costs one block of memory, or one group in a trainer's form.
 *
 * @throws ServiceError `not-found` for an unknown batch, `cursor-gone` for groups that are forgotten.
 */
export function streamGroups(
  service: RolloutService,
  wish: GroupWish,
  {
    clock = systemClock,
    onEnd = () => {},
  }: {
    readonly clock?: Clock;
    /** Called once, when the stream has ended or its reader has left. */
    readonly onEnd?: () => void;
  } = {},
): ReadableStream<Uint8Array> {
  const { cursor, batch } = wish;
  if (batch !== undefined) service.batch(batch);
  const { groups } = service;
  const first = groups.next(cursor, batch);
  if (first !== undefined && isGone(groups, first, batch)) {
    throw cursorGone(groups, { cursor, batch });
  }
  const left = new AbortController();
  const lines = linesOf(service, wish, { clock, signal: left.signal });
  let isOver = false;
  // A reader that leaves while a line is waited for ends the stream twice: by leaving, and as the wait is over.
  const end = (): void => {
    if (!isOver) onEnd();
    isOver = true;
  };
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await lines.next();
          if (done !== true) {
            controller.enqueue(value);
            return;
          }
        } catch (error) {
          end();
          throw error;
        }
        // The reader may have left.
        if (!left.signal.aborted) controller.close();
        end();
      },
      async cancel() {
        left.abort();
        end();
        await lines.return(undefined);
      },
    },
    // Reads nothing before the reader asks for it.
    { highWaterMark: 0 },
  );
}

async function* linesOf(
  service: RolloutService,
  { cursor, batch, form }: GroupWish,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): AsyncGenerator<Uint8Array, undefined, undefined> {
  const { groups } = service;
  const write = (line: object): Uint8Array => Buffer.from(`${JSON.stringify(line)}\n`);
  while (!signal.aborted) {
    const entry = groups.next(cursor, batch);
    if (entry !== undefined) {
      // The group was acknowledged after the request. The next request gets the error.
      if (isGone(groups, entry, batch)) throw cursorGone(groups, { cursor, batch });
      cursor = entry.cursor;
      // The group belongs to its batch's taker.
      if (groups.isForgotten(entry)) continue;
      yield* form === undefined
        ? groups.read(entry)
        : formedLine(service, entry, { form, isAlone: batch !== undefined });
      continue;
    }
    const told = batch === undefined ? undefined : service.batch(batch);
    if (told !== undefined && hasEnded(told)) {
      const { state, reason } = told;
      yield write({ type: "end", cursor, state, ...(reason !== undefined && { reason }) });
      return;
    }
    if (service.stopping.aborted) {
      yield write({ type: "end", cursor, state: "stopping" });
      return;
    }
    if (!(await groups.changed(waitMs, { signal, clock }))) yield write({ type: "wait" });
  }
}

/**
 * True if a reader would miss a group. Groups that another reader acknowledged by their batch do
 * not count.
 */
function isGone(groups: GroupStore, entry: GroupEntry, batch: string | undefined): boolean {
  return batch === undefined ? entry.cursor <= groups.acknowledged : groups.isForgotten(entry);
}

function cursorGone(
  groups: GroupStore,
  { cursor, batch }: Pick<GroupWish, "cursor"> & { readonly batch: string | undefined },
): ServiceError {
  const upTo = groups.acknowledgedUpTo(batch);
  const message = `Groups behind the cursor ${cursor} were acknowledged, up to ${upTo}: ask from there`;
  return new ServiceError("cursor-gone", message);
}

/** The line of a group in a trainer's form; the group is in memory while it is made. */
async function* formedLine(
  service: RolloutService,
  entry: GroupEntry,
  { form, isAlone }: { readonly form: TrainerForm; readonly isAlone: boolean },
): AsyncGenerator<Uint8Array, undefined, undefined> {
  const { cursor, batch } = entry;
  const blocks: Uint8Array[] = [];
  let size = 0;
  for await (const block of service.groups.read(entry)) {
    size += block.length;
    if (size <= maxFormedSize) blocks.push(block);
  }
  const refused = `Cannot export a group of ${size} bytes: expected ${maxFormedSize} at most`;
  const group =
    size > maxFormedSize
      ? { batch, format: form.to, records: [], notes: [], refused }
      : await service.trainerGroups.toForm(
          (JSON.parse(Buffer.concat(blocks).toString("utf8")) as { group: object }).group,
          service.placeOf(entry, isAlone),
          form,
        );
  yield* (await encodeLine({ type: "group", cursor, group })).blocks;
}
