"""Published models with their data.

BUGS: Lunn, Spiegelhalter, Thomas, Best: The BUGS project, and the two volumes of its examples.
BDA3: Gelman, Carlin, Stern, Dunson, Vehtari, Rubin: Bayesian Data Analysis, third edition.
"""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt


def numbers(text: str) -> np.ndarray:
    """The numbers in a text, as floats."""
    return np.array(text.split(), dtype=float)


def eight_schools() -> pm.Model:
    """Rubin (1981), Estimation in parallel randomized experiments; BDA3, section 5.5."""
    effect = numbers("28 8 -3 7 -1 1 18 12")
    error = numbers("15 10 16 11 9 11 10 18")
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 5.0)
        tau = pm.HalfCauchy("tau", 5.0)
        unit = pm.Normal("unit", 0.0, 1.0, shape=8)
        school = pm.Deterministic("school", mu + tau * unit)
        pm.Normal("effect", school, error, observed=effect)
    return model


def rats() -> pm.Model:
    """BUGS, volume 1: weights of 30 young rats in five weeks (Gelfand et al., 1990)."""
    weights = numbers("""
        151 199 246 283 320  145 199 249 293 354  147 214 263 312 328  155 200 237 272 297
        135 188 230 280 323  159 210 252 298 331  141 189 231 275 305  159 201 248 297 338
        177 236 285 350 376  134 182 220 260 296  160 208 261 313 352  143 188 220 273 314
        154 200 244 289 325  171 221 270 326 358  163 216 242 281 312  160 207 248 288 324
        142 187 234 280 316  156 203 243 283 317  157 212 259 307 336  152 203 246 286 321
        154 205 253 298 334  139 190 225 267 302  146 191 229 272 302  157 211 250 285 323
        132 185 237 286 331  160 207 257 303 345  169 216 261 295 333  157 205 248 289 316
        137 180 219 258 291  153 200 244 286 324""").reshape(30, 5)
    days = numbers("8 15 22 29 36") - 22
    with pm.Model() as model:
        mean = pm.Normal("mean", 0.0, 100.0, shape=2)
        spread = pm.InverseGamma("spread", 2.0, 2.0, shape=2)
        level = pm.Normal("level", mean[0], spread[0], shape=30)
        slope = pm.Normal("slope", mean[1], spread[1], shape=30)
        sigma = pm.HalfNormal("sigma", 10.0)
        line = level[:, None] + slope[:, None] * days
        pm.Normal("weight", line, sigma, observed=weights)
    return model


def coal_mining_disasters() -> pm.Model:
    """Jarrett (1979); as a switch point with two missing years in the overview of PyMC."""
    counts = numbers("""
        4 5 4 0 1 4 3 4 0 6 3 3 4 0 2 6 3 3 5 4 5 3 1 4 4 1 5 5 3 4 2 5 2 2 3 4 2 1 3 -1 2 1 1 1 1
        3 0 0 1 0 1 1 0 0 3 1 0 3 2 2 0 1 1 1 0 1 0 1 0 0 0 2 1 0 0 0 1 1 0 2 3 3 1 -1 2 1 1 1 1
        2 4 2 0 0 1 4 0 0 0 1 0 0 0 0 0 1 0 0 1 0 1""").astype(int)
    years = np.arange(1851, 1851 + len(counts))
    with pm.Model() as model:
        switch = pm.DiscreteUniform("switch", years[0], years[-1])
        early = pm.Exponential("early", 1.0)
        late = pm.Exponential("late", 1.0)
        rate = pm.math.switch(switch >= years, early, late)
        pm.Poisson("disasters", rate, observed=np.ma.masked_equal(counts, -1))
    return model


def challenger() -> pm.Model:
    """Dalal, Fowlkes, Hoadley (1989), Risk analysis of the space shuttle: damage by degrees F."""
    degrees = numbers("66 70 69 68 67 72 73 70 57 63 70 78 67 53 67 75 70 81 76 79 75 76 58")
    damage = numbers("0 1 0 0 0 0 0 0 1 1 1 0 0 1 0 0 0 0 0 0 1 0 1").astype(int)
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 1.0)
        level = pm.Normal("level", 0.0, 10.0)
        p = pm.Deterministic("p", 1.0 / (1.0 + pt.exp(slope * (degrees - 70.0) + level)))
        pm.Bernoulli("damage", p, observed=damage)
    return model


def surgical() -> pm.Model:
    """BUGS, volume 1: deaths after heart surgery of babies in twelve hospitals."""
    operations = numbers("47 148 119 810 211 196 148 215 207 97 256 360").astype(int)
    deaths = numbers("0 18 8 46 8 13 9 31 14 8 29 24").astype(int)
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, tau=1e-2)
        tau = pm.Gamma("tau", 1e-1, 1e-1)
        b = pm.Normal("b", mu, tau=tau, shape=12)
        pm.Binomial("deaths", operations, logit_p=b, observed=deaths)
    return model


def seeds() -> pm.Model:
    """BUGS, volume 1: germinated seeds of two kinds on two extracts (Crowder, 1978)."""
    r = numbers("10 23 23 26 17 5 53 55 32 46 10 8 10 8 23 0 3 22 15 32 3").astype(int)
    n = numbers("39 62 81 51 39 6 74 72 51 79 13 16 30 28 45 4 12 41 30 51 7").astype(int)
    kind = (np.arange(21) >= 11).astype(float)
    extract = numbers("0 0 0 0 0 1 1 1 1 1 1 0 0 0 0 0 1 1 1 1 1")
    factors = np.stack([np.ones(21), kind, extract, kind * extract], axis=1)
    with pm.Model() as model:
        alpha = pm.Normal("alpha", 0.0, 10.0, shape=4)
        sigma = pm.HalfNormal("sigma", 1.0)
        b = pm.Normal("b", 0.0, sigma, shape=21)
        logit = (factors * alpha).sum(axis=1) + b
        pm.Binomial("r", n, pm.math.invlogit(logit), observed=r)
    return model


def pumps() -> pm.Model:
    """BUGS, volume 1: failures of ten pumps of a power plant (George et al., 1993)."""
    time = numbers("94.3 15.7 62.9 126 5.24 31.4 1.05 1.05 2.1 10.5")
    failures = numbers("5 1 5 14 3 19 1 1 4 22").astype(int)
    with pm.Model() as model:
        alpha = pm.Exponential("alpha", 1.0)
        beta = pm.Gamma("beta", 0.1, 1.0)
        rate = pm.Gamma("rate", alpha, beta, shape=10)
        pm.Poisson("failures", rate * time, observed=failures)
    return model


def salm() -> pm.Model:
    """BUGS, volume 1: salmonella colonies by dose of quinoline, with overdispersion (Breslow)."""
    dose = numbers("0 10 33 100 333 1000")
    colonies = numbers("15 21 29 16 18 21 16 26 33 27 41 60 33 38 41 20 27 42").astype(int)
    with pm.Model() as model:
        alpha, beta, gamma = (pm.Normal(name, 0.0, 1.0) for name in ("alpha", "beta", "gamma"))
        sigma = pm.HalfNormal("sigma", 1.0)
        plate = pm.Normal("plate", 0.0, sigma, shape=(6, 3))
        line = alpha + beta * np.log(dose + 10.0) + gamma * dose / 1000.0
        log_rate = line[:, None] + plate
        pm.Poisson("colonies", pt.exp(log_rate), observed=colonies.reshape(6, 3))
    return model


def golf_putting() -> pm.Model:
    """Berry (1996); Gelman, Nolan (2002): putts that go in, by distance in feet, from geometry."""
    feet = np.arange(2.0, 21.0)
    tries = numbers("""
        1443 694 455 353 272 256 240 217 200 237 202 192 174 167 201 195 191 147 152""").astype(int)
    hits = numbers("""
        1346 577 337 208 149 136 111 69 67 75 52 46 54 28 27 31 33 20 24""").astype(int)
    ball, cup = 1.68 / 24, 4.25 / 24
    angle = np.arcsin((cup - ball) / feet)
    with pm.Model() as model:
        sigma = pm.HalfNormal("sigma", 1.0)
        p = 2.0 * pm.math.exp(pm.logcdf(pm.Normal.dist(0.0, sigma), angle)) - 1.0
        pm.Binomial("hits", tries, pm.Deterministic("p", p), observed=hits)
    return model


def rugby() -> pm.Model:
    """Six Nations of 2014, after Baio, Blangiardo (2010); an example of PyMC by Peadar Coyle.

    Teams: Wales, France, Ireland, Scotland, Italy, England.
    """
    home = numbers("0 1 2 2 3 1 0 4 5 2 3 5 4 0 1").astype(int)
    away = numbers("4 5 3 0 5 4 1 3 2 4 1 0 5 3 2").astype(int)
    home_points = numbers("23 26 28 26 0 30 27 20 13 46 17 29 11 51 20").astype(int)
    away_points = numbers("15 24 6 3 20 10 6 21 10 7 19 18 52 3 22").astype(int)
    coords = {"team": ["Wales", "France", "Ireland", "Scotland", "Italy", "England"]}
    with pm.Model(coords=coords) as model:
        advantage = pm.Normal("advantage", 0.0, 1.0)
        level = pm.Normal("level", 3.0, 1.0)
        spread = pm.HalfStudentT("spread", nu=3, sigma=2.5, shape=2)
        attack = pm.Normal("attack", 0.0, spread[0], dims="team")
        defence = pm.Normal("defence", 0.0, spread[1], dims="team")
        attack, defence = attack - attack.mean(), defence - defence.mean()
        home_rate = pt.exp(level + advantage + attack[home] + defence[away])
        away_rate = pt.exp(level + attack[away] + defence[home])
        pm.Poisson("home_points", home_rate, observed=home_points)
        pm.Poisson("away_points", away_rate, observed=away_points)
    return model


def stacks() -> pm.Model:
    """BUGS, volume 1: stack loss of an ammonia plant, robust regression (Brownlee, 1965)."""
    air = numbers("80 80 75 62 62 62 62 62 58 58 58 58 58 58 50 50 50 50 50 56 70")
    water = numbers("27 27 25 24 22 23 24 24 23 18 18 17 18 19 18 18 19 19 20 20 20")
    acid = numbers("89 88 90 87 87 87 93 93 87 80 89 88 82 93 89 86 72 79 80 82 91")
    loss = numbers("42 37 37 28 18 18 19 20 15 14 14 13 11 12 8 7 8 8 9 15 15")
    factors = np.stack([air, water, acid])
    factors = (factors - factors.mean(1, keepdims=True)) / factors.std(1, keepdims=True)
    with pm.Model() as model:
        level = pm.Normal("level", 0.0, 100.0)
        beta = pm.Laplace("beta", 0.0, 5.0, shape=3)
        sigma = pm.HalfCauchy("sigma", 5.0)
        mu = level + pm.math.dot(beta, factors)
        pm.StudentT("loss", nu=4, mu=mu, sigma=sigma, observed=loss)
    return model


def dugongs() -> pm.Model:
    """BUGS, volume 2: lengths of 27 dugongs by age, a growth curve (Ratkowsky, 1983)."""
    age = numbers("""
        1.0 1.5 1.5 1.5 2.5 4.0 5.0 5.0 7.0 8.0 8.5 9.0 9.5 9.5 10.0 12.0 12.0 13.0 13.0 14.5 15.5
        15.5 16.5 17.0 22.5 29.0 31.5""")
    length = numbers("""
        1.80 1.85 1.87 1.77 2.02 2.27 2.15 2.26 2.47 2.19 2.26 2.40 2.39 2.41 2.50 2.32 2.32 2.43
        2.47 2.56 2.65 2.47 2.64 2.56 2.70 2.72 2.57""")
    with pm.Model() as model:
        alpha = pm.Normal("alpha", 0.0, 10.0)
        beta = pm.Normal("beta", 0.0, 10.0)
        gamma = pm.Uniform("gamma", 0.5, 1.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("length", alpha - beta * gamma**age, sigma, observed=length)
    return model


def beetles() -> pm.Model:
    """BUGS, volume 2: beetles killed by carbon disulphide, probit by dose (Bliss, 1935)."""
    dose = numbers("1.6907 1.7242 1.7552 1.7842 1.8113 1.8369 1.8610 1.8839")
    beetles = numbers("59 60 62 56 63 59 62 60").astype(int)
    killed = numbers("6 13 18 28 52 53 61 60").astype(int)
    with pm.Model() as model:
        level = pm.Normal("level", 0.0, 10.0)
        slope = pm.Normal("slope", 0.0, 10.0)
        p = pm.math.invprobit(level + slope * (dose - dose.mean()))
        pm.Binomial("killed", beetles, p, observed=killed)
    return model


def dyes() -> pm.Model:
    """BUGS, volume 1: yields of dyestuff, variance between and within batches (Davies, 1967)."""
    yields = numbers("""
        1545 1440 1440 1520 1580  1540 1555 1490 1560 1495  1595 1550 1605 1510 1560
        1445 1440 1595 1465 1545  1595 1630 1515 1635 1625  1520 1455 1450 1480 1445""")
    with pm.Model() as model:
        theta = pm.Normal("theta", 1500.0, 100.0)
        within = pm.Gamma("within", 1.0, 1.0)
        between = pm.Gamma("between", 1.0, 1.0)
        mu = pm.Normal("mu", theta, tau=between, shape=(6, 1))
        pm.Normal("yields", mu, tau=within, observed=yields.reshape(6, 5))
    return model


def leukaemia() -> pm.Model:
    """Freireich et al. (1963): weeks of remission with 6-mercaptopurine and placebo, censored.

    As a Weibull regression in BUGS, volume 1 (leuk).  Zero weeks of limit: not censored.
    """
    drug = numbers("6 6 6 6 7 9 10 10 11 13 16 17 19 20 22 23 25 32 32 34 35")
    censored = numbers("0 0 0 1 0 1 0 1 1 0 0 1 1 1 0 0 1 1 1 1 1").astype(bool)
    placebo = numbers("1 1 2 2 3 4 4 5 5 8 8 8 8 11 11 12 12 15 17 22 23")
    weeks = np.concatenate([drug, placebo])
    group = np.repeat([0, 1], 21)
    limit = np.where(np.concatenate([censored, np.zeros(21, bool)]), weeks, np.inf)
    with pm.Model() as model:
        shape = pm.Gamma("shape", 2.0, 1.0)
        scale = pm.LogNormal("scale", 2.0, 1.0, shape=2)
        remission = pm.Weibull.dist(shape, scale[group])
        pm.Censored("weeks", remission, lower=None, upper=limit, observed=weeks)
    return model


def kline() -> pm.Model:
    """Kline, Boyd (2010), tools of island societies; McElreath, Statistical Rethinking."""
    population = numbers("1100 1500 3600 4791 7400 8000 9200 13000 17500 275000")
    contact = numbers("0 0 0 1 1 1 1 0 1 0").astype(int)
    tools = numbers("13 22 24 43 33 19 40 28 55 71").astype(int)
    with pm.Model() as model:
        a = pm.Normal("a", 1.0, 1.0, shape=2)
        b = pm.Exponential("b", 1.0, shape=2)
        g = pm.Exponential("g", 1.0)
        pm.Poisson("tools", pt.exp(a[contact]) * population ** b[contact] / g, observed=tools)
    return model


def admissions() -> pm.Model:
    """Bickel et al. (1975), Sex bias in graduate admissions; McElreath, Statistical Rethinking."""
    applied = numbers("825 108 560 25 325 593 417 375 191 393 373 341").astype(int)
    admitted = numbers("512 89 353 17 120 202 138 131 53 94 22 24").astype(int)
    gender = np.arange(12) % 2
    with pm.Model() as model:
        a = pm.Normal("a", 0.0, 1.5, shape=2)
        phi = pm.Exponential("phi", 1.0)
        p, theta = pm.math.invlogit(a[gender]), phi + 2.0
        alpha, beta = p * theta, (1.0 - p) * theta
        pm.BetaBinomial("admitted", alpha, beta, applied, observed=admitted)
    return model


def nile() -> pm.Model:
    """Cobb (1978): flow of the Nile; the local level model of Durbin, Koopman (2012)."""
    flow = numbers("""
        1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140
        1100 1210 1150 1250 1260 1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969
        831 726 456 824 702 1120 1100 832 764 821 768 845 864 862 698 845 744 796 1040 759
        781 865 845 944 984 897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890
        744 749 838 1050 918 986 797 923 975 815 1020 906 901 1170 912 746 919 718 714 740""")
    with pm.Model() as model:
        sigma = pm.HalfNormal("sigma", [150.0, 50.0], shape=2)
        start = pm.Normal.dist(1000.0, 200.0)
        level = pm.GaussianRandomWalk("level", sigma=sigma[1], init_dist=start, steps=99)
        pm.Normal("flow", level, sigma[0], observed=flow)
    return model


def hare_and_lynx() -> pm.Model:
    """Pelts of the Hudson Bay Company, 1900 to 1920 (Hewitt, 1921); Carpenter (2018).

    Lotka-Volterra equations, ten steps of Euler's method in a year.
    """
    hare = numbers("""
        30 47.2 70.2 77.4 36.3 20.6 18.1 21.4 22 25.4 27.1 40.3 57 76.6 52.3 19.5 11.2 7.6 14.6
        16.2 24.7""")
    lynx = numbers("""
        4 6.1 9.8 35.2 59.4 41.7 19 13 8.3 9.1 7.4 8 12.3 19.5 45.7 51.1 29.7 15.8 9.7 10.1 8.6""")

    def step(h, x, a, b, c, d):
        return h + 0.1 * (a - b * x) * h, x + 0.1 * (d * h - c) * x

    with pm.Model() as model:
        growth = pm.TruncatedNormal("growth", 1.0, 0.5, lower=0.0, shape=2, initval=[0.5, 0.8])
        contact = pm.TruncatedNormal(
            "contact", 0.05, 0.05, lower=0.0, shape=2, initval=[0.025, 0.025]
        )
        start = pm.LogNormal("start", np.log(10.0), 1.0, shape=2)
        sigma = pm.LogNormal("sigma", -1.0, 1.0, shape=2)
        rates = [growth[0], contact[0], growth[1], contact[1]]
        first = [start[0], start[1]]
        steps = pytensor.scan(
            step, outputs_info=first, non_sequences=rates, n_steps=200, return_updates=False
        )
        path = pt.stack([pt.concatenate([f[None], s[9::10]]) for f, s in zip(first, steps)])
        pelts = np.stack([hare, lynx])
        pm.LogNormal("pelts", pt.log(path), sigma[:, None], observed=pelts)
    return model


MODELS = (
    eight_schools,
    rats,
    coal_mining_disasters,
    challenger,
    surgical,
    seeds,
    pumps,
    salm,
    golf_putting,
    rugby,
    stacks,
    dugongs,
    beetles,
    dyes,
    leukaemia,
    kline,
    admissions,
    nile,
    hare_and_lynx,
)
