import type { ColumnModel, TestColumns } from "../shared/column-model.ts";
import { RequestRefused } from "./request-refused.ts";

/** The columns of a server, with the model that computes their values. */
export type ServedColumns = Omit<TestColumns, "model"> & { readonly model: ColumnModel };

/** The columns that a request asks for, of those that the server returns. */
export interface ColumnOptions {
  /** The first row of routed experts. `undefined`: none are returned. */
  readonly routesFrom: number | undefined;
  readonly returnsMask: boolean;
  readonly returnsIndexer: boolean;
}

/** The value of `top_k` for all tokens. */
const allTokens = 2 ** 30;

/**
 * Reads the columns that a request asks for. Ignores columns that the server was not started to return.
 *
 * **Source:** recorded from SGLang 0.5.23.
 *
 * @throws RequestRefused
 */
export function readColumnOptions(
  body: Readonly<Record<string, unknown>>,
  {
    promptLength,
    topK,
    served,
  }: {
    readonly promptLength: number;
    readonly topK: number;
    readonly served: ServedColumns;
  },
): ColumnOptions {
  const returnsRoutes =
    body["return_routed_experts"] === true && served.routedExperts !== undefined;
  const start = Number(body["routed_experts_start_len"] ?? 0);
  if (returnsRoutes) checkStart(start, promptLength);
  const most = served.keptTokens?.maxCount;
  const returnsMask = body["return_sampling_mask"] === true && most !== undefined;
  if (returnsMask && !(topK >= 1 && topK <= most)) {
    const named = topK === -1 ? allTokens : topK;
    throw new RequestRefused(
      "value",
      "return_sampling_mask requires top_k=1 for greedy sampling or finite " +
        `1 < top_k <= ${most}; got top_k=${named}. Lower top_k or increase --sampling-mask-max-tokens.`,
    );
  }
  return {
    routesFrom: returnsRoutes ? start : undefined,
    returnsMask,
    returnsIndexer: body["return_indexer_topk"] === true && served.indexerTopK !== undefined,
  };
}

function checkStart(start: number, promptLength: number): void {
  const name = "routed_experts_start_len";
  if (start < 0) {
    const advice = `Please use a non-negative ${name}.`;
    throw new RequestRefused("value", `recv_req.${name}=${start} is lower than 0. ${advice}`);
  }
  if (start <= promptLength) return;
  throw new RequestRefused(
    "value",
    `recv_req.${name}=${start} is higher than the number of input tokens ` +
      `len(req.origin_input_ids)=${promptLength}. Please use a smaller ${name}.`,
  );
}
