import type { GatewayDialect } from "./dialect.ts";
import { openAiError } from "./openai-error.ts";
import { decodeResponses, readResponsesHistory } from "./responses-decode.ts";
import { encodeResponsesReply, ResponsesWriter } from "./responses-encode.ts";

/** The dialect of OpenAI's Responses. */
export const responsesDialect: GatewayDialect = {
  name: "responses",
  path: "/responses",
  idPrefixes: { call: "call_", reply: "resp_" },
  countsReasoning: true,
  historyField: "input",
  readHistory: readResponsesHistory,
  decode: decodeResponses,
  encodeReply: encodeResponsesReply,
  createWriter: (start) => new ResponsesWriter(start),
  encodeError: openAiError,
};
