import type { FinishReason, LiveSequence } from "./request-scheduler.ts";
import type { SequenceRequest } from "./sequence-request.ts";

/** One sequence of a request to the server. */
export interface RecordedRequest extends SequenceRequest {
  readonly routingKey: string | undefined;
  /** The reason for the sequence's end. Absent while the request is running, or if a fault was the reply. */
  readonly finish?: FinishReason;
  /** The sampled ids. Absent exactly if `finish` is. */
  readonly outputIds?: readonly number[];
}

/** The latest requests, and the counts of all requests. */
export interface RequestLog {
  /** The requests in the order of arrival. */
  readonly requests: readonly RecordedRequest[];
  /** The number of ended sequences, by the reason of their end. */
  readonly finished: Readonly<Record<FinishReason["type"], number>>;
  readonly sampledTokenCount: number;
  /** Records a request. Returns a function that records its end. */
  add(request: SequenceRequest, routingKey: string | undefined): (sequence: LiveSequence) => void;
}

/** Creates a log that keeps `limit` requests. */
export function createRequestLog(limit: number): RequestLog {
  const requests: RecordedRequest[] = [];
  const finished = { stop: 0, length: 0, abort: 0 };
  let sampledTokenCount = 0;
  return {
    requests,
    finished,
    get sampledTokenCount() {
      return sampledTokenCount;
    },
    add({ rid, inputIds, samplingParams, maxNewTokens, stopTokenIds }, routingKey) {
      const record: { -readonly [Field in keyof RecordedRequest]: RecordedRequest[Field] } = {
        rid,
        routingKey,
        inputIds,
        samplingParams,
        maxNewTokens,
        stopTokenIds,
      };
      requests.push(record);
      if (requests.length > limit) requests.shift();
      return ({ finish, outputIds }) => {
        sampledTokenCount += outputIds.length;
        if (finish === undefined) return;
        finished[finish.type] += 1;
        record.finish = finish;
        record.outputIds = outputIds;
      };
    },
  };
}
