import { defaultThresholds } from "../../doctor/diagnosis.ts";
import { exporters } from "../../export/exporters.ts";

const errorAnswer = {
  description: "Refused: see docs/service.md for the codes.",
  content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
};

const whole = { type: "integer", minimum: 0 };
const batchRef = { $ref: "#/components/schemas/Batch" };

function answer(status: number, schema: object, type = "application/json"): object {
  return {
    [status]: { description: "Done.", content: { [type]: { schema } } },
    default: errorAnswer,
  };
}

function objectOf(properties: object, required: readonly string[] = Object.keys(properties)) {
  return { type: "object", properties, required, additionalProperties: false };
}

function body(schema: object, required = true): object {
  return { requestBody: { required, content: { "application/json": { schema } } } };
}

const batchRequest = objectOf(
  {
    key: { type: "string", minLength: 1, maxLength: 200 },
    split: { type: "string" },
    tasks: { type: "array", items: whole, minItems: 1, uniqueItems: true },
    samples: { type: "integer", minimum: 1 },
    seed: { ...whole, default: 0 },
    sampling: objectOf(
      {
        temperature: { type: "number", minimum: 0, maximum: 100 },
        topP: { type: "number", minimum: 0, maximum: 1 },
        topK: { type: "integer", minimum: -1 },
        minP: { type: "number", minimum: 0, maximum: 1 },
      },
      [],
    ),
    deadlineS: { type: "number", exclusiveMinimum: 0 },
    minPolicyVersion: whole,
    engine: { type: "string", format: "uri", maxLength: 2000 },
  },
  ["key", "split", "tasks", "samples"],
);

const batch = objectOf(
  {
    batch: { type: "string" },
    key: { type: "string" },
    state: { enum: ["queued", "running", "finished", "cancelled", "failed"] },
    groups: whole,
    finishedGroups: whole,
    reason: { type: "string" },
  },
  ["batch", "key", "state", "groups", "finishedGroups"],
);

const binary = "application/octet-stream";
const octets = { type: "string", format: "binary" };
const batchId = { name: "id", in: "path", required: true, schema: { type: "string" } };
const batchList = objectOf({ batches: { type: "array", items: batchRef } });
const stateOf = (state: string) => objectOf({ state: { const: state } });

/** Returns the OpenAPI 3.1 description of the service's paths. docs/service.md explains them. */
export function openApi(version: string): object {
  return {
    openapi: "3.1.0",
    info: { title: "Turnwright's rollout service", version },
    components: {
      schemas: {
        Batch: batch,
        Error: objectOf({
          error: objectOf({ code: { type: "string" }, message: { type: "string" } }),
        }),
      },
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
    },
    security: [{}, { token: [] }],
    paths: {
      "/v1/batches": {
        post: {
          summary: "Ask for rollouts",
          ...body(batchRequest),
          responses: { ...answer(201, batchRef), ...answer(200, batchRef) },
        },
        get: { summary: "List batches", responses: answer(200, batchList) },
        delete: { summary: "Cancel all batches", responses: answer(200, batchList) },
      },
      "/v1/batches/{id}": {
        parameters: [batchId],
        get: { summary: "Look at a batch", responses: answer(200, batchRef) },
        delete: { summary: "Cancel a batch", responses: answer(200, batchRef) },
      },
      "/v1/clear": {
        post: {
          summary: "Cancel and forget batches by the beginning of their keys",
          ...body(objectOf({ keyPrefix: { type: "string" } })),
          responses: answer(
            200,
            objectOf({ keyPrefix: { type: "string" }, cancelledBatches: whole }),
          ),
        },
      },
      "/v1/groups": {
        get: {
          summary: "Stream finished groups",
          parameters: [
            { name: "cursor", in: "query", schema: { ...whole, default: 0 } },
            { name: "batch", in: "query", schema: { type: "string" } },
            { name: "format", in: "query", schema: { enum: Object.keys(exporters) } },
            { name: "policyVersion", in: "query", schema: whole },
            { name: "promptText", in: "query", schema: { type: "boolean", default: false } },
          ],
          responses: answer(200, { type: "string" }, "application/x-ndjson"),
        },
      },
      "/v1/columns/{hash}": {
        get: {
          summary: "Read the bytes of a side column",
          parameters: [
            { name: "hash", in: "path", required: true, schema: { type: "string" } },
            { name: "Range", in: "header", schema: { type: "string" } },
          ],
          responses: { ...answer(200, octets, binary), ...answer(206, octets, binary) },
        },
      },
      "/v1/groups/ack": {
        post: {
          summary: "Let groups be forgotten",
          ...body(objectOf({ cursor: whole, batch: { type: "string" } }, [])),
          responses: answer(
            200,
            objectOf({ cursor: whole, batch: { type: "string" } }, ["cursor"]),
          ),
        },
      },
      "/v1/trainer-logprobs": {
        post: {
          summary: "Compare a trainer's own logprobs of rows",
          requestBody: {
            required: true,
            content: { "application/x-ndjson": { schema: { type: "string" } } },
          },
          responses: answer(200, objectOf({ rows: whole, trainedTokens: whole })),
        },
      },
      "/v1/doctor": {
        get: {
          summary: "Diagnose the mismatch of trainer and engine",
          parameters: [
            { name: "lag", in: "query", schema: { type: "integer" } },
            ...Object.keys(defaultThresholds).map((name) => {
              return { name, in: "query", schema: { type: "number", minimum: 0 } };
            }),
          ],
          responses: answer(200, { type: "object" }),
        },
      },
      "/v1/policy": {
        post: {
          summary: "Announce a version of the policy",
          ...body(
            objectOf(
              { version: whole, weights: { type: "string" }, restart: { type: "boolean" } },
              ["version"],
            ),
          ),
          responses: answer(200, objectOf({ policyVersion: whole })),
        },
      },
      "/v1/pause": {
        post: {
          summary: "Pause",
          ...body(objectOf({}), false),
          responses: answer(200, stateOf("paused")),
        },
      },
      "/v1/resume": {
        post: {
          summary: "Resume",
          ...body(objectOf({}), false),
          responses: answer(200, stateOf("running")),
        },
      },
      "/run": {
        post: {
          summary: "Play one rollout for NeMo Gym",
          ...body({
            type: "object",
            properties: {
              task_index: whole,
              split: { type: "string" },
              responses_create_params: { type: "object" },
            },
            required: ["task_index", "responses_create_params"],
          }),
          responses: answer(200, { type: "object" }),
        },
      },
      "/aggregate_metrics": {
        post: {
          summary: "Sum up what NeMo Gym collected",
          ...body({
            type: "object",
            properties: { verify_responses: { type: "array", items: { type: "object" } } },
            required: ["verify_responses"],
          }),
          responses: answer(200, { type: "object" }),
        },
      },
      "/v1/health": {
        get: { summary: "Look at the service", responses: answer(200, { type: "object" }) },
      },
      "/metrics": {
        get: { summary: "Figures", responses: answer(200, { type: "string" }, "text/plain") },
      },
      "/openapi.json": {
        get: { summary: "This page", responses: answer(200, { type: "object" }) },
      },
    },
  };
}
