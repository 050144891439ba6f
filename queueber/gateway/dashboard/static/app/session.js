// Who is logged in: the Authorization header, kept in this tab only.

const KEY = "queueber-authorization";

export const session = new EventTarget();
// Events: "login" when a credential is needed, "changed" when there is another one.

export function authorization() {
  return sessionStorage.getItem(KEY) ?? "";
}

export function logInWithToken(token) {
  keep(`Bearer ${token}`);
}

export function logInWithPassword(user, password) {
  const bytes = new TextEncoder().encode(`${user}:${password}`);
  keep(`Basic ${btoa(String.fromCharCode(...bytes))}`);
}

export function logOut() {
  sessionStorage.removeItem(KEY);
  session.dispatchEvent(new Event("changed"));
  session.dispatchEvent(new Event("login"));
}

export function forget() {
  sessionStorage.removeItem(KEY);
}

export function needLogin() {
  session.dispatchEvent(new Event("login"));
}

function keep(header) {
  sessionStorage.setItem(KEY, header);
  session.dispatchEvent(new Event("changed"));
}
