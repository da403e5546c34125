"""Forms of programs that a search begins with: usual ones, and frames for polynomials.

Owns the formulas as text. `evo.approximation.fitting` fits them and chooses.
"""

# Arguments of polynomials, G as a function of one, and the result, with the inverse of each: p of G, and G of y. c is the
# sign of x as a number, a its size. Some factors keep powers of two, which are flushed below 2^-126, above the results.
VARIABLES = ("v = x", "v = x*x", "v = abs(x)", "v = exp2(abs(x)*-1.442695)", "v = log2(fma(-x, x, 1.0))")
BOUNDED = "v = min(abs(x), 24.0)"  # so that powers stay finite
KERNELS = {
    "G = p": "G",
    "G = v*p": "G/v",
    "G = x*p": "G/x",
    "G = exp2(p)": "log2(G)",
    "G = exp2(v*p)": "log2(G)/v",
    "G = exp2(x*p)": "log2(G)/x",
    "G = v*exp2(p)": "log2(G/v)",
    "G = exp2(fma(-0.7213475*x, x, 8.0))*p": "G*exp2(0.7213475*x*x - 8)",
    "G = exp2(fma(-1.442695*x, x, 8.0))*p": "G*exp2(1.442695*x*x - 8)",
    "G = exp2(fma(-1.442695, abs(x), 8.0))*p": "G*exp2(1.442695*a - 8)",
    "G = tanh(x*p)": "arctanh(G)/x",
}
OUTERS = {
    "y = G": "y",
    "y = x*G": "y/x",
    "y = copysign(G, x)": "y*c",
    "y = fma(G, 0.0009765625, max(x, 0.0))": "(y - maximum(x, 0))*1024",
    "y = fma(G, -0.0009765625, max(x, 0.0))": "(maximum(x, 0) - y)*1024",
    "y = max(copysign(1.0, x), 0.0) - copysign(1.0, x)*G": "c*((c > 0) - y)",
    "y = fma(copysign(1.0, x), G, max(copysign(1.0, x), 0.0))": "c*(y - (c > 0))",
    "y = fma(copysign(0.0009765625, x), G, max(copysign(2.0, -x), 0.0))": "(y - 2*(c < 0))*c*1024",
    "y = copysign(1.0 - G, x)": "1 - y*c",
    "y = 1.0 - G": "1 - y",
    "y = 1/(G + 1.0)": "1/y - 1",
    "y = x/(G + 1.0)": "x/y - 1",
    "h = x*0.5; y = fma(h, G, h)": "2*y/x - 1",
    "y = fma(x, 0.5, G)": "y - x/2",
    "y = fma(G, 0.5, 0.5)": "2*y - 1",
    "y = log2(G + 1.0)*0.6931472": "exp2(y*1.4426950408889634) - 1",
    "y = fma(log2(G + 1.0), 0.6931472, max(x, 0.0))": "exp2((y - maximum(x, 0))*1.4426950408889634) - 1",
    "y = log2(x)*G": "y/log2(x)",
    "y = sqrt(abs(x))*G": "y/sqrt(a)",
}
# Of functions by name: usual forms; and PARTS: a range reduction, the steps after a polynomial of z, and their inverse.
FORMS: dict[str, tuple[str, ...]] = dict(  # noqa: C408 - names, which a test tells from those of tasks
    exp=("exp2(x*1.442695)", "t = x*1.442695; e = exp2(t); y = fma(e, fma(x, 1.925963e-8, fma(x, 1.442695, -t))*0.6931472, e)"),
    exp2=("exp2(x)",),
    log=("log2(x)*0.6931472",),
    log2=("log2(x)",),
    log1p=("log2(x + 1)*0.6931472",),
    expm1=("exp2(x*1.442695) - 1",),
    tanh=("tanh(x)", "1 - 2/(exp2(x*2.88539) + 1)"),
    tanh_grad=("t = tanh(x); y = 1 - t*t", "t = exp2(abs(x)*-2.88539); r = 1/(t + 1); y = 4*t*r*r"),
    sigmoid=(
        "tanh(x*0.5)*0.5 + 0.5",
        "1/(exp2(x*-1.442695) + 1)",
        "t = x*-1.442695; e = exp2(t); l = fma(x, -1.925963e-8, fma(x, -1.442695, -t)); y = 1/(fma(e*l, 0.6931472, e) + 1)",
    ),
    sigmoid_grad=("t = tanh(x*0.5); y = 0.25 - 0.25*t*t", "t = exp2(abs(x)*-1.442695); r = 1/(t + 1); y = t*r*r"),
    softplus=("log2(exp2(x*1.442695) + 1)*0.6931472", "fma(log2(exp2(abs(x)*-1.442695) + 1), 0.6931472, max(x, 0.0))"),
    silu=(
        "h = x*0.5; y = h*tanh(h) + h",
        "x/(exp2(x*-1.442695) + 1)",
        "a = abs(x); e = exp2(fma(a, -1.442695, 8.0)); y = fma(a*e*(1/fma(e, 0.00390625, 1.0)), -0.00390625, max(x, 0.0))",
        "t = x*-1.442695; e = exp2(t); l = fma(x, -1.925963e-8, fma(x, -1.442695, -t)); y = x/(fma(e*l, 0.6931472, e) + 1)",
    ),
    silu_grad=(
        "t = tanh(x*0.5)*0.5 + 0.5; y = x*(t - t*t) + t",
        "t = exp2(x*-1.442695); r = 1/(t + 1); y = r*fma(x*t, r, 1)",
        "t = exp2(x*-1.442695); r = 1/(t + 1); y = r*fma(x, 1 - r, 1)",
    ),
    gelu=("h = x*0.5; y = h*tanh(x*(0.0356774*x*x + 0.7978846)) + h", "x/(exp2(x*(-0.1029*x*x - 2.302208)) + 1)"),
    gelu_tanh=("h = x*0.5; y = h*tanh(x*(0.0356774*x*x + 0.7978846)) + h", "x/(exp2(x*(-0.1029432*x*x - 2.302208)) + 1)"),
    gelu_grad=("t = tanh(x*(0.0356774*x*x + 0.7978846))*0.5 + 0.5; y = x*exp2(x*x*-0.7213475)*0.3989423 + t",),
    erf=(
        "tanh(x*1.167695)*1.013543",
        "tanh(x*fma(0.1003*x, x, 1.1293))",
        "s = x*x; y = tanh(x*fma(fma(-0.0018136, s, 0.104141), s, 1.128124))",
    ),
    erf_grad=(
        "exp2(x*x*-1.442695)*1.128379",
        (
            "s = x*x; t = s*-1.442695; u = fma(s, -1.442695, -t); v = fma(fma(x, x, -s), -1.442695, fma(s, -1.925963e-8, u));"
            "e = exp2(t)*1.128379; y = fma(e*v, 0.6931472, e)"
        ),
    ),
    erfc=("1 - tanh(x*(0.1029*x*x + 1.128379))",),
    sinh=("e = exp2(x*1.442695); y = fma(e, 0.5, -0.5/e)", "h = exp2(fma(abs(x), 1.442695, -1.0)); y = copysign(h - 0.25/h, x)"),
    cosh=("e = exp2(x*1.442695); y = fma(e, 0.5, 0.5/e)",),
    asinh=("copysign(log2(abs(x) + sqrt(fma(x, x, 1.0)))*0.6931472, x)",),
    acosh=("log2(x + sqrt(fma(x, x, -1.0)))*0.6931472",),
    atanh=("log2((1 + x)/(1 - x))*0.3465736",),
    rsqrt=("1/sqrt(x)", "r = 1/sqrt(x); h = x*-0.5; y = r*fma(h*r, r, 1.5)"),
    cbrt=(
        "copysign(exp2(log2(abs(x))*0.3333333), x)",
        "r = exp2(log2(abs(x))*-0.6666667); c = x*r; y = fma(fma(c*r*-0.3333333, c, 0.3333333), c, c)",
    ),
    sin=("sin(x)",),
    cos=("cos(x)",),
    tan=("sin(x)/cos(x)",),
    sinpi=("sin(x*3.1415927)",),
)
_ROUNDED = "k = fma(x, {}, 12582912.0) - 12582912.0; v = {}; z = {}"
_POWER = "s = u32_to_f32(shl_b32(f32_to_u32(n), 23))"  # 2^k, of n = k + 12583039, which ends with the bits of k + 127
_SCALED = "n = fma(x, 1.442695, 12583039.0); k = 12583039.0 - n; v = {}; z = {}; " + _POWER
_MANTISSA = "e = and_b32(sub_u32(f32_to_u32({0}), {1}), 0xFF800000)"  # the exponent, above its bits; x/2^k is from 0.7 or 0.75 on
_EXPONENT = "cvt_rn_f32_s32(u32_to_s32(e))"
_PARITY = "q = k*0.5; o = fma(q + 12582912.0 - 12582912.0, -2.0, k); d = o*o"
_PI = "fma(k, -1.5099580e-7, fma(k, -3.1415925, x))"
_LN2 = "fma(k, -1.4286068e-6, fma(k, -0.69314575, x))"
_FROM_LN2 = "fma(k, 1.4286068e-6, fma(k, 0.69314575, x))"
_INVERTED = "u = abs(x); v = min(u, 1/u); z = v*v; d = u - 1.0"
_GUESS = "sub_u32(0x54A2FA8C, mul_hi_u32(f32_to_u32(x), 0x55555556))"  # of the inverse root
_ROOT = "w = u32_to_f32({}); b = x*(w*w); v = fma(b, w, -1.0); z = v"
_SIN = ("y = fma(-2.0*d, p*v, p*v)", "y/((1 - 2*d)*v)")
PARTS: tuple[tuple[str, str, str, str], ...] = (
    ("exp", _ROUNDED.format("1.442695", _LN2, "v"), "y = exp2(k)*p", "y/exp2(k)"),
    ("exp2", "k = x + 12582912.0 - 12582912.0; v = x - k; z = v", "y = exp2(k)*p", "y/exp2(k)"),
    ("exp", _SCALED.format("fma(x, 1.442695, k)", "v"), "y = p*s", "y/s"),
    ("exp", _SCALED.format("fma(k, 0.6931472, x)", "v"), "y = p*s", "y/s"),
    ("exp", _SCALED.format(_FROM_LN2, "v"), "y = p*s", "y/s"),
    ("exp", _SCALED.format(_FROM_LN2, "v"), "y = fma(fma(p, v, 1.0), v, 1.0)*s", "((y/s - 1)/v - 1)/v"),
    ("exp2", f"n = x + 12583039.0; v = x - (n - 12583039.0); z = v; {_POWER}", "y = p*s", "y/s"),
    ("expm1", _SCALED.format(_FROM_LN2, "v"), "y = fma(s, v*p, s - 1.0)", "(y - (s - 1))/(s*v)"),
    (  # k is 0 up to log(1.5), so that s - 1 cancels little
        "expm1",
        f"n = fma(x, 1.442695, -0.085) + 12583039.0; k = 12583039.0 - n; v = {_FROM_LN2}; z = v; w = v*v; {_POWER}",
        "y = fma(s, fma(w, p, v), s - 1.0)",
        "((y - (s - 1))/s - v)/w",
    ),
    (
        "expm1",
        _ROUNDED.format("1.442695", _LN2, "v"),
        "e = exp2(k); y = fma(e, v*p, e - 1.0)",
        "(y - (exp2(k) - 1))/(exp2(k)*v)",
    ),
    ("log", "v = x - 1.0; z = v; b = log2(x)*0.6931472", "y = select(abs(v) < 0.25, v*p, b)", "y/v"),
    ("log2", "v = x - 1.0; z = v; b = log2(x)", "y = select(abs(v) < 0.25, v*p, b)", "y/v"),
    (
        "log",
        f"{_MANTISSA.format('x', '0x3F3504F3')}; z = u32_to_f32(sub_u32(f32_to_u32(x), e)); b = {_EXPONENT}",
        "y = fma(b, 8.2629583e-8, p)",
        "y - b*8.262958294867817e-08",
    ),
    (
        "log",
        f"{_MANTISSA.format('x', '0x3F3504F3')}; z = u32_to_f32(sub_u32(f32_to_u32(x), e)) - 1.0; b = {_EXPONENT}",
        "y = fma(b, 8.2629583e-8, p)",
        "y - b*8.262958294867817e-08",
    ),
    (
        "log",
        f"{_MANTISSA.format('x', '0x3F3504F3')}; z = u32_to_f32(sub_u32(f32_to_u32(x), e)) - 1.0; b = {_EXPONENT}",
        "y = fma(b, 8.2629583e-8, z*p)",
        "(y - b*8.262958294867817e-08)/z",
    ),
    (
        "log2",
        f"{_MANTISSA.format('x', '0x3F3504F3')}; z = u32_to_f32(sub_u32(f32_to_u32(x), e)); b = {_EXPONENT}",
        "y = fma(b, 1.1920929e-7, p)",
        "y - b*2.0**-23",
    ),
    ("log1p", "v = x/(x + 2.0); z = v*v", "y = v*p", "y/v"),
    (
        "log1p",
        (
            f"{_MANTISSA.format('x + 1.0', '0x3F400000')}; w = u32_to_f32(sub_u32(0x40800000, e)); b = {_EXPONENT};"
            "v = u32_to_f32(sub_u32(f32_to_u32(x), e)) + fma(w, 0.25, -1.0); z = v; u = v*v"
        ),
        "y = fma(b, 8.2629583e-8, fma(u, p, v))",
        "(y - b*8.262958294867817e-08 - v)/u",
    ),
    ("cbrt", _ROOT.format(_GUESS), "y = b*p", "y/b"),
    ("cbrt", _ROOT.format(_GUESS), "y = fma(b*v, p, b)", "(y/b - 1)/v"),
    ("cbrt", _ROOT.format(f"and_b32({_GUESS}, 0xFFFFF000)"), "y = fma(b*v, p, b)", "(y/b - 1)/v"),  # its square is exact
    ("sin", f"{_ROUNDED.format('0.31830987', _PI, 'v*v')}; {_PARITY}", *_SIN),
    ("cos", f"{_ROUNDED.format('0.31830987', _PI, 'v*v')}; {_PARITY}", "y = fma(-2.0*d, p, p)", "y/(1 - 2*d)"),
    ("sinpi", f"k = x + 12582912.0 - 12582912.0; v = x - k; z = v*v; {_PARITY}", *_SIN),
    (
        "tan",
        "z = x*x; d = fma(x, x, -2.467401) - 7.2592896e-8",
        "y = fma(x*z, p/d, x)",
        "(y/x - 1)*d/z",
    ),
    (  # whose quotient is corrected by its remainder
        "tan",
        "z = x*x; d = fma(x, x, -2.467401); r = 1/d",
        "n = p; q = n*r; y = fma(x*z, fma(fma(q, 7.2592896e-8, fma(-q, d, n)), r, q), x)",
        "(y/x - 1)*(d - 7.2592896e-8)/z",
    ),
    ("tan", _ROUNDED.format("0.31830987", _PI, "v*v"), "y = v*p", "y/v"),
    ("tanh", "z = x*x; b = 1 - 2/(exp2(x*2.88539) + 1)", "y = select(abs(x) < 0.6, x*p, b)", "y/x"),
    (
        "atan",
        _INVERTED,
        "y = copysign(fma(copysign(v, d), p, max(copysign(1.5707964, d), 0.0)), x)",
        "where(u < 1, -y*c, y*c - 1.5707963267948966)/v",
    ),
    (
        "atan",
        _INVERTED,
        "y = copysign(copysign(fma(v, p, 0.7853982), d) + 0.7853982, x)",
        "(where(u < 1, -1, 1)*(y*c - 0.7853981633974483) - 0.7853981633974483)/v",
    ),
)
