/**
 * Checks of exported files.
 *
 * @module
 */
export type { SpecialTokens } from "./exported/special-tokens.ts";
export {
  verifyExport,
  type ExportVerification,
  type VerifyExportOptions,
} from "./exported/verify-export.ts";
