import { createRequire } from "node:module";
import type * as openTelemetry from "@opentelemetry/api";

/** OpenTelemetry's API, and our tracer in it. */
export interface RegisteredTracing extends Pick<typeof openTelemetry, "trace" | "context"> {
  readonly tracer: openTelemetry.Tracer;
}

/** Where every copy of the API keeps what is registered in it. */
const registry = Symbol.for("opentelemetry.js.api.1");

let loaded: typeof openTelemetry | undefined;

/**
 * The API where the program has registered something in it; a process without an SDK does not load it.
 *
 * Source: open-telemetry/opentelemetry-js, `api/src/internal/global-utils.ts`.
 */
export function registeredTracing(): RegisteredTracing | undefined {
  if (!(registry in globalThis)) return undefined;
  loaded ??= createRequire(import.meta.url)("@opentelemetry/api") as typeof openTelemetry;
  const { trace, context } = loaded;
  return { trace, context, tracer: trace.getTracer("turnwright") };
}
