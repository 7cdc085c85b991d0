import type { HttpExchange } from "./http-exchange.ts";
import type { LiveSequence, RequestScheduler } from "./request-scheduler.ts";
import type { SequenceRequest } from "./sequence-request.ts";

/** Drops the sequences of clients that disconnect. Checks at intervals, as an engine does. */
export function watchDisconnect<Request extends SequenceRequest>(
  { response }: HttpExchange,
  sequences: readonly LiveSequence<Request>[],
  {
    scheduler,
    disconnectPollMs,
  }: { scheduler: RequestScheduler<Request>; disconnectPollMs: number },
): void {
  response.once("close", () => {
    if (response.writableFinished) return;
    const drop = (): void => {
      for (const { request } of sequences) scheduler.drop(request.rid);
    };
    if (disconnectPollMs === 0) drop();
    else setTimeout(drop, disconnectPollMs).unref();
  });
}
