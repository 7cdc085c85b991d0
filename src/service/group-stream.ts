import { systemClock, type Clock } from "../async/clock.ts";
import { encodeLine } from "../run/disk/encode-line.ts";
import { hasEnded } from "./batch.ts";
import type { GroupStore } from "./group-store.ts";
import type { RolloutService } from "./rollout-service.ts";
import { ServiceError } from "./service-error.ts";
import type { GroupEntry } from "./service-journal.ts";
import type { TrainerForm } from "./trainer-groups.ts";

/** The groups that a reader requests. */
export interface GroupWish {
  /** The stream starts after the group with this cursor. */
  readonly cursor: number;
  /** The batch whose groups the reader wants. Absent: all batches. */
  readonly batch?: string;
  /** The trainer's form. Absent: groups byte for byte as they were stored. */
  readonly form?: TrainerForm;
}

/** The time without a group after which a stream sends a `wait` line, in milliseconds. */
const waitMs = 10_000;

/** Maximum size of a group's line that is converted to a trainer's form, in bytes. */
const maxFormedSize = 256 * 1024 * 1024;

/**
 * Streams finished groups as lines of JSON. Reads the disk only as fast as the reader reads, so a
 * slow reader costs one block of memory, or one group in a trainer's form.
 *
 * @throws ServiceError `not-found` for an unknown batch, `cursor-gone` for groups that are
 *   forgotten.
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
  // If a reader leaves during a wait, both `cancel()` and the end of the wait call this function.
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
        // `close()` throws after `cancel()`.
        if (!left.signal.aborted) controller.close();
        end();
      },
      async cancel() {
        left.abort();
        end();
        await lines.return(undefined);
      },
    },
    // No group is read from the disk before the reader wants it.
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
      // The batch's taker has taken the group.
      if (groups.isForgotten(entry)) continue;
      yield* form === undefined
        ? groups.read(entry)
        : formedLine(service, entry, { form, isAlone: batch !== undefined });
      continue;
    }
    const summary = batch === undefined ? undefined : service.batch(batch);
    if (summary !== undefined && hasEnded(summary)) {
      const { state, reason } = summary;
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
  const message = `Groups after the cursor ${cursor} were acknowledged, up to ${upTo}: continue from there`;
  return new ServiceError("cursor-gone", message);
}

/**
 * Converts a group to a trainer's form and returns its line. The complete group is in memory during
 * the conversion.
 */
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
