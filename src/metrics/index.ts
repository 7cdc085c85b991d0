/**
 * Prometheus metrics of a run.
 *
 * @module
 */
export { startMetricsServer, type MetricsServer } from "./metrics-server.ts";
export type { MetricsSource, RunMetrics } from "./run-metrics.ts";
