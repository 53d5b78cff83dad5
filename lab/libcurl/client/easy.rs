//! libcurl's easy interface: one handle, one transfer at a time, without C at the surface.

use std::ffi::{CStr, CString, c_char, c_long, c_void};
use std::ptr::{self, NonNull};
use std::sync::Once;
use std::time::{Duration, Instant, SystemTime};

use curl_sys as curl;

/// A handle, and with it the connections it keeps open.
pub(crate) struct Easy {
    handle: NonNull<curl::CURL>,
}

/// What is to be sent, and how.
pub(crate) struct Request<'a> {
    pub(crate) url: &'a str,
    /// URL of a forward proxy; empty for none, whatever the environment says.
    pub(crate) proxy: &'a str,
    pub(crate) method: Method,
    /// Whole lines, without line ends.
    pub(crate) headers: Vec<String>,
    /// Limit of the whole transfer: the armed timer without which old versions do not sleep.
    pub(crate) timeout_ms: Option<u32>,
}

pub(crate) enum Method {
    Get,
    Post {
        body: Vec<u8>,
        expect_continue: bool,
    },
}

/// How a transfer went.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// The wall clock just before `curl_easy_perform`.
    pub(crate) start: SystemTime,
    /// How long `curl_easy_perform` took, on a clock that does not step.
    pub(crate) duration: Duration,
    /// The response's status; `None` without a response.
    pub(crate) status: Option<u16>,
    /// The port that the connection had on this side; `None` without a connection.
    pub(crate) local_port: Option<u16>,
    pub(crate) failure: Option<TransferFailure>,
}

/// A `CURLcode` that is not `CURLE_OK`.
#[derive(Debug)]
pub(crate) struct TransferFailure {
    pub(crate) code: u32,
    pub(crate) message: String,
}

/// Name and version of libcurl and of what it links, as it gives them itself.
pub(crate) fn version() -> String {
    // SAFETY: takes nothing, and returns a C string that is never freed or changed.
    unsafe { CStr::from_ptr(curl::curl_version()) }
        .to_string_lossy()
        .into_owned()
}

impl Easy {
    /// Opens a handle; fails if libcurl cannot be set up.
    pub(crate) fn new() -> Result<Self, String> {
        static GLOBAL: Once = Once::new();
        GLOBAL.call_once(|| {
            // SAFETY: `Once` keeps two threads from being in it together. Should it fail, then
            // `curl_easy_init` tries again and fails likewise.
            unsafe { curl::curl_global_init(curl::CURL_GLOBAL_ALL) };
        });
        // SAFETY: takes nothing; the library is set up.
        let handle = unsafe { curl::curl_easy_init() };
        NonNull::new(handle).map_or_else(
            || Err("curl_easy_init failed".to_owned()),
            |handle| Ok(Self { handle }),
        )
    }

    /// Makes one transfer, throwing the response's body away. Fails if a part of the request
    /// cannot be given to libcurl; a transfer that fails is a result.
    pub(crate) fn perform(&mut self, request: &Request<'_>) -> Result<Transfer, String> {
        let mut headers = HeaderList::default();
        for line in &request.headers {
            headers.append(line)?;
        }
        self.reset();
        self.set_text(curl::CURLOPT_URL, request.url)?;
        self.set_text(curl::CURLOPT_PROXY, request.proxy)?;
        self.set_text(curl::CURLOPT_NOPROXY, "")?;
        self.set_text(curl::CURLOPT_USERAGENT, &user_agent())?;
        self.set_long(curl::CURLOPT_NOSIGNAL, 1)?;
        if let Some(limit) = request.timeout_ms {
            self.set_long(curl::CURLOPT_TIMEOUT_MS, limit.into())?;
        }
        if let Method::Post {
            body,
            expect_continue,
        } = &request.method
        {
            self.set_body(body)?;
            headers.append(if *expect_continue {
                "Expect: 100-continue"
            } else {
                "Expect:"
            })?;
        }
        self.discard_response()?;
        self.set_headers(&headers)?;
        let (start, started) = (SystemTime::now(), Instant::now());
        // SAFETY: the handle is open, and what its options point to (`headers`, `discard`)
        // is alive until after this call.
        let code = unsafe { curl::curl_easy_perform(self.handle.as_ptr()) };
        let duration = started.elapsed();
        let transfer = Transfer {
            start,
            duration,
            status: self.info(curl::CURLINFO_RESPONSE_CODE),
            local_port: self.info(curl::CURLINFO_LOCAL_PORT),
            failure: (code != curl::CURLE_OK).then(|| TransferFailure {
                code,
                message: describe(code),
            }),
        };
        self.reset();
        Ok(transfer)
    }

    /// Forgets all options, and with them every pointer; connections stay.
    fn reset(&mut self) {
        // SAFETY: the handle is open.
        unsafe { curl::curl_easy_reset(self.handle.as_ptr()) };
    }

    fn set_text(&mut self, option: curl::CURLoption, text: &str) -> Result<(), String> {
        let text = c_string(text)?;
        // SAFETY: the handle is open; all options given here take a C string and copy it.
        let code = unsafe { curl::curl_easy_setopt(self.handle.as_ptr(), option, text.as_ptr()) };
        check(code)
    }

    fn set_long(&mut self, option: curl::CURLoption, value: c_long) -> Result<(), String> {
        // SAFETY: the handle is open; all options given here take a long.
        check(unsafe { curl::curl_easy_setopt(self.handle.as_ptr(), option, value) })
    }

    fn set_body(&mut self, body: &[u8]) -> Result<(), String> {
        let length = c_long::try_from(body.len()).map_err(|_| "body too long".to_owned())?;
        self.set_long(curl::CURLOPT_POST, 1)?;
        self.set_long(curl::CURLOPT_POSTFIELDSIZE, length)?;
        let start: *const c_void = body.as_ptr().cast();
        let option = curl::CURLOPT_COPYPOSTFIELDS;
        // SAFETY: the handle is open; the size set above is the slice's, and it is copied here.
        check(unsafe { curl::curl_easy_setopt(self.handle.as_ptr(), option, start) })
    }

    fn discard_response(&mut self) -> Result<(), String> {
        let callback: curl::curl_write_callback = discard;
        let option = curl::CURLOPT_WRITEFUNCTION;
        // SAFETY: the handle is open; the type of the callback is the one the option wants.
        check(unsafe { curl::curl_easy_setopt(self.handle.as_ptr(), option, callback) })
    }

    fn set_headers(&mut self, headers: &HeaderList) -> Result<(), String> {
        let option = curl::CURLOPT_HTTPHEADER;
        // SAFETY: the handle is open; `perform`, the only caller, keeps the list until it has
        // reset the handle.
        check(unsafe { curl::curl_easy_setopt(self.handle.as_ptr(), option, headers.first) })
    }

    /// A number that libcurl gives as a long; `None` where 0 stands for "there is none".
    fn info(&self, what: curl::CURLINFO) -> Option<u16> {
        let mut value: c_long = 0;
        // SAFETY: the handle is open; all numbers asked for here are written as a long.
        let code = unsafe {
            curl::curl_easy_getinfo(self.handle.as_ptr(), what, ptr::from_mut(&mut value))
        };
        check(code).ok()?;
        u16::try_from(value).ok().filter(|value| *value > 0)
    }
}

impl Drop for Easy {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nobody can use it any more.
        unsafe { curl::curl_easy_cleanup(self.handle.as_ptr()) };
    }
}

/// A C list of header lines.
struct HeaderList {
    first: *mut curl::curl_slist,
}

impl Default for HeaderList {
    fn default() -> Self {
        Self {
            first: ptr::null_mut(),
        }
    }
}

impl HeaderList {
    fn append(&mut self, line: &str) -> Result<(), String> {
        let text = c_string(line)?;
        // SAFETY: null or a list made here; the text is copied.
        let first = unsafe { curl::curl_slist_append(self.first, text.as_ptr()) };
        if first.is_null() {
            return Err(format!("no memory for the header {line:?}"));
        }
        self.first = first;
        Ok(())
    }
}

impl Drop for HeaderList {
    fn drop(&mut self) {
        // SAFETY: null or a list made by `append`, of which no handle knows any more.
        unsafe { curl::curl_slist_free_all(self.first) };
    }
}

/// `libcurl/VERSION`, without what it links.
pub(crate) fn user_agent() -> String {
    version().split(' ').next().unwrap_or_default().to_owned()
}

extern "C" fn discard(_: *mut c_char, size: usize, count: usize, _: *mut c_void) -> usize {
    size.saturating_mul(count)
}

fn check(code: curl::CURLcode) -> Result<(), String> {
    if code == curl::CURLE_OK {
        Ok(())
    } else {
        Err(format!("libcurl: {}", describe(code)))
    }
}

fn describe(code: curl::CURLcode) -> String {
    // SAFETY: any code will do; the text is never freed or changed.
    unsafe { CStr::from_ptr(curl::curl_easy_strerror(code)) }
        .to_string_lossy()
        .into_owned()
}

fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| format!("a null byte in {text:?}"))
}
