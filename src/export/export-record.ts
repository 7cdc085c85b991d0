/** One line of an export, or one entry of each of its lists. JSON-able. */
export type ExportRecord = Readonly<Record<string, unknown>>;
