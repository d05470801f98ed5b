import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Tls } from "../../src/net/one-port.ts";
import { openTlsFiles } from "../../src/net/tls-files.ts";
import { noReport, reportTo } from "../../src/report.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { identityOf, tlsText } from "../tls.ts";

const [first, second] = [identityOf("localhost"), identityOf("renewed")];
const clientCa = tlsText("ca-one.crt");
const intervalMs = 20;

/** A secret as Kubernetes mounts it: the files are links through one link that is swapped. */
function mount(t: TestContext, identity: Tls) {
  const dir = directory(t);
  let version = 0;
  const write = ({ cert, key, ca = "" }: Tls) => {
    const data = join(dir, `..${++version}`);
    mkdirSync(data);
    for (const [name, text] of Object.entries({ crt: cert, key, ca })) {
      writeFileSync(join(data, name), text);
    }
    symlinkSync(data, join(dir, "..new"));
    renameSync(join(dir, "..new"), join(dir, "..data"));
  };
  write(identity);
  for (const name of ["crt", "key", "ca"]) symlinkSync(join("..data", name), join(dir, name));
  const path = (name: string) => join(dir, name);
  return {
    swap: write,
    path,
    paths: { certFile: path("crt"), keyFile: path("key") },
    mutual: { certFile: path("crt"), keyFile: path("key"), clientCaFile: path("ca") },
  };
}

/** Watches the files; `next` resolves with the next identity or problem that they report. */
function watch(t: TestContext, paths: Parameters<typeof openTlsFiles>[0]) {
  const waiting: ((told: Tls | string) => void)[] = [];
  const told: (Tls | string)[] = [];
  const tell = (what: Tls | string) => {
    const next = waiting.shift();
    if (next) next(what);
    else told.push(what);
  };
  const files = openTlsFiles(paths, {
    ...{ intervalMs, onChange: tell },
    report: reportTo({ filesUnusable: ({ reason }) => tell(reason) }),
  });
  // The timers of `files` do not keep the process alive; this one does.
  const alive = setInterval(() => {}, 1_000);
  t.after(() => {
    clearInterval(alive);
    files.close();
  });
  const next = (): Promise<Tls | string> => {
    const what = told.shift();
    return what ? Promise.resolve(what) : new Promise((resolve) => waiting.push(resolve));
  };
  return { identity: files.content, next, told };
}

test("a swapped link replaces all files at once", async (t) => {
  const secret = mount(t, { ...first, ca: clientCa });
  const files = watch(t, secret.mutual);
  assert.deepEqual(files.identity, { ...first, ca: clientCa });
  const changed = { ...second, ca: tlsText("ca-two.crt") };
  secret.swap(changed);
  assert.deepEqual(await files.next(), changed);
  secret.swap({ ...first, ca: clientCa });
  assert.deepEqual(await files.next(), { ...first, ca: clientCa });
  assert.deepEqual(files.told, []);
});

test("files written one after the other are loaded together", async (t) => {
  const secret = mount(t, first);
  const files = watch(t, secret.paths);
  writeFileSync(secret.path("crt"), second.cert);
  writeFileSync(secret.path("key"), second.key);
  assert.deepEqual(await files.next(), second);
});

test("new files that cannot be used are reported, and good ones after them are loaded", async (t) => {
  const secret = mount(t, first);
  const files = watch(t, secret.paths);
  for (const [broken, variable] of [
    [{ cert: "", key: "" }, "TLS_CERT_FILE"],
    [{ cert: second.cert, key: first.key }, "TLS_KEY_FILE"],
  ] as const) {
    secret.swap(broken);
    assert.match(String(await files.next()), new RegExp(`^${variable}: `));
  }
  rmSync(secret.path("key"));
  assert.equal(await files.next(), "TLS_KEY_FILE: cannot be read (ENOENT)");
  symlinkSync(join("..data", "key"), secret.path("key"));
  secret.swap(second);
  assert.deepEqual(await files.next(), second);
});

test("files that cannot be used at start are refused with the name of their variable", (t) => {
  const broken = first.cert.replace(/\n.{20}/, "\nAAAAAAAAAAAAAAAAAAAA");
  const cases: [Partial<Tls>, RegExp][] = [
    [{ cert: "no PEM" }, /^TLS_CERT_FILE: has no PEM certificate$/],
    [{ cert: broken }, /^TLS_CERT_FILE: its certificate 1 is not well-formed$/],
    [{ cert: first.cert + broken }, /^TLS_CERT_FILE: its certificate 2 is not well-formed$/],
    [{ key: "" }, /^TLS_KEY_FILE: is not the PEM key, without a passphrase, of the first/],
    [{ key: "no PEM" }, /^TLS_KEY_FILE: is not the PEM key/],
    [
      { key: second.key },
      /^TLS_KEY_FILE: is not the PEM key, .* in TLS_CERT_FILE \(ERR_OSSL_X509_KEY_VALUES_MISMATCH\)$/,
    ],
    [{ ca: "" }, /^TLS_CLIENT_CA_FILE: has no PEM certificate$/],
  ];
  for (const [wrong, message] of cases) {
    const secret = mount(t, { ...first, ca: clientCa, ...wrong });
    const open = () => openTlsFiles(secret.mutual, { report: noReport });
    assert.throws(open, { name: "ConfigError", message });
  }
  const nowhere = { certFile: "/none", keyFile: "/none" };
  const open = () => openTlsFiles(nowhere, { report: noReport });
  assert.throws(open, { message: "TLS_CERT_FILE: cannot be read (ENOENT)" });
});
