import { createRequire } from "node:module";
import type * as openTelemetry from "@opentelemetry/api";

/** OpenTelemetry's API, with this package's tracer. */
export interface RegisteredTracing extends Pick<typeof openTelemetry, "trace" | "context"> {
  readonly tracer: openTelemetry.Tracer;
}

/** The key under which every copy of the API keeps its registrations. */
const registry = Symbol.for("opentelemetry.js.api.1");

let loaded: typeof openTelemetry | undefined;

/**
 * Returns the API if the program has registered an SDK. Without one, the API is not loaded.
 *
 * Source: open-telemetry/opentelemetry-js, `api/src/internal/global-utils.ts`.
 */
export function registeredTracing(): RegisteredTracing | undefined {
  if (!(registry in globalThis)) return undefined;
  loaded ??= createRequire(import.meta.url)("@opentelemetry/api") as typeof openTelemetry;
  const { trace, context } = loaded;
  return { trace, context, tracer: trace.getTracer("turnwright") };
}
