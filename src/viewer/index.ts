/**
 * Runs in the browser.
 *
 * @module
 */
export type { ViewerServer } from "./server.ts";
export { startRunViewer, type RunViewerOptions } from "./start-run-viewer.ts";
