/**
 * Builds the operator's console from console/ into one self-contained document,
 * src/admin/console.gen.html. `npm ci` runs it (`prepare`). An installation without development
 * dependencies has no esbuild, and keeps the page that it was shipped with.
 */
import { renameSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** The packages whose code is in the page. */
export const consolePackages = ["preact"];

const target = new URL("../src/admin/console.gen.html", import.meta.url);

/** Writes the page. @returns its size in bytes; undefined when esbuild is not installed. */
export async function buildConsole(): Promise<number | undefined> {
  const esbuild = await import("esbuild").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  });
  if (!esbuild) return undefined;
  const bundle = async (entry: string): Promise<string> => {
    const { outputFiles } = await esbuild.build({
      entryPoints: [new URL(`../console/${entry}`, import.meta.url).pathname],
      bundle: true,
      write: false,
      minify: true,
      format: "esm",
      target: ["chrome123", "firefox120", "safari17.5"],
      jsx: "automatic",
      jsxImportSource: "preact",
      legalComments: "none",
      logLevel: "warning",
    });
    return outputFiles[0]?.text.trim() ?? "";
  };
  const html = pageOf(await bundle("style.css"), await bundle("main.tsx"));
  // A rename, so that a concurrent reader gets either the old or the new page, whole.
  const draft = new URL(`${target.href}.${process.pid}`);
  writeFileSync(draft, html);
  renameSync(draft, target);
  return Buffer.byteLength(html);
}

function pageOf(style: string, script: string): string {
  if (/<\/(?:script|style)/i.test(style + script))
    throw new Error("the bundle ends its own element");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>Payments gateway</title>
<link rel="icon" href="${icon}">
<style>${style}</style>
</head>
<body>
<div id="app"><noscript>The console needs JavaScript.</noscript></div>
<script type="module">${script}</script>
</body>
</html>
`;
}

/** Embedded in the document, since browsers would otherwise request /favicon.ico. */
const icon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#2457c5"/><path d="M8 11h9m-3-4 4 4-4 4M24 21h-9m3-4-4 4 4 4" fill="none" stroke="#fff" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"/></svg>',
)}`;

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const bytes = await buildConsole();
  console.log(
    bytes === undefined
      ? "the console's page is not built: esbuild, a development dependency, is not installed"
      : `the console's page is built: ${Math.round(bytes / 1024)} KiB`,
  );
}
